import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseExpiry, parseGrace } from '../../src/cli/flag-values.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { emptyFolder, runEv } from '../support/cli.ts'
import { request, startService } from '../support/cli-service.ts'
import { ev, homeWith, read } from '../support/cli-webhooks.ts'
import { waitUntil } from '../support/wait.ts'

const isCreation = ({ action }: { action: string }) => action === 'account.created'

/** Returns how a service responds to requests with these keys. */
async function statusesOf(home: string, ...keys: string[]): Promise<readonly number[]> {
  const service = await startService(home)
  const asked = keys.map(key => request(service, key, '/v1/credits'))
  const statuses = (await Promise.all(asked)).map(({ status }) => status)
  await service.end('SIGTERM')
  return statuses
}

describe.concurrent('ev keys', { timeout: 60_000 }, () => {
  test('prints how to create an account if there is none, and creates nothing', async () => {
    const home = emptyFolder()
    for (const args of [['list'], ['create', '--name', 'CI'], ['revoke', 'key_a']]) {
      const { code, stdout, stderr } = await ev(home, 'keys', ...args)
      expect([code, stdout]).toEqual([66, ''])
      expect(stderr).toContain(`No accounts in ${home}/data yet. Start "ev serve"`)
      expect(stderr).toContain('"ev accounts create --name NAME"')
    }
    expect(readdirSync(join(home, 'data'))).toEqual([])
  })

  test('reports a database that it cannot access, instead of a missing one', async () => {
    const home = emptyFolder()
    // A link to itself, because root can read every file.
    symlinkSync('loop', join(home, 'loop'))
    const { code, stderr } = await runEv(['keys', '--data-dir', 'loop'], { home, offline: true })
    expect([code, stderr]).toEqual([
      74,
      expect.stringMatching(
        /^error: The database .* cannot be accessed: too many symbolic links.* --data-dir\.\n$/,
      ),
    ])
  })

  test('shows a key once at creation, and only its ends later', async () => {
    const home = await homeWith('Shop')
    const { code, stdout } = await ev(home, 'keys', 'create', '--name', 'CI')
    expect(code).toBe(0)
    const text = /ev_live_\w{38}/.exec(stdout)?.[0] ?? ''
    expect(await statusesOf(home, text, `${text.slice(0, -1)}_`)).toEqual([200, 401])
    expect(await read(home, 'keys')).toMatchObject([{ name: 'CI', scopes: ['*'] }])
    const listed = (await ev(home, 'keys')).stdout
    expect(listed).toContain(`${text.slice(0, 12)}…${text.slice(-4)}`)
    expect(listed).not.toContain(text.slice(0, 14))
    expect(readFileSync(join(home, 'data/ev.sqlite')).includes(text.slice(12))).toBe(false)
  })

  test('creates a key with restrictions, and shows it as the HTTP API does', async () => {
    const home = await homeWith('Shop')
    const limits = ['--scopes', 'verify:single,jobs:read', '--allow-ip', '203.0.113.0/24, ::1']
    const more = ['--allow-domain', 'Shop.Example', '--expires', '2035-01-31', '--rate-limit', '30']
    const key = await read(home, 'keys', 'create', '--name', ' CI ', ...limits, ...more)
    expect(key).toMatchObject({
      name: 'CI',
      scopes: ['verify:single', 'jobs:read'],
      rate_limit_per_minute: 30,
      allowed_ips: ['203.0.113.0/24', '::1'],
      allowed_domains: ['shop.example'],
      expires_at: '2035-01-31T00:00:00.000Z',
      last_used_at: null,
    })
    expect(Object.keys(key).slice(0, 2)).toEqual(['id', 'key'])
    const { key: _, ...rest } = key
    expect(await read(home, 'keys')).toEqual([rest])
  })

  test.each([
    [['--scopes', 'verify:all'], 'Unknown scope "verify:all". Scopes: verify:single,'],
    [
      ['--allow-ip', '10.0.0.0/33'],
      '--allow-ip has "10.0.0.0/33"; it takes up to 100 IP addresses and CIDRs',
    ],
    [['--allow-domain', 'https://a.test'], '--allow-domain has "https://a.test"'],
    [
      ['--rate-limit', '0'],
      '--rate-limit is "0"; it takes requests per minute, a whole number from 1 to 100000.',
    ],
    [['--expires', '2020-01-01'], '--expires is "2020-01-01"; it takes a future time'],
    [['--name', ' '], 'The name is " "; it must be 1 to 100 characters on one line.'],
  ])('rejects %j', async (args, message) => {
    const { code, stderr } = await ev(emptyFolder(), 'keys', 'create', '--name', 'CI', ...args)
    expect(stderr).toContain(message)
    expect(code).toBe(64)
  })

  test('creates a publishable key, which needs domains and takes no scopes', async () => {
    const home = await homeWith('Shop')
    const create = ['keys', 'create', '--name', 'Form', '--publishable']
    const site = ['--allow-domain', 'shop.example']
    const { stdout } = await ev(home, ...create, ...site)
    expect(stdout).toMatch(/^ {2}ev_pub_\w{38}$/m)
    expect(stdout).toContain('The key is publishable: web pages may contain it.')
    expect(stdout).toContain('Scopes: verify:form; only on shop.example; 120 requests per minute.')
    const limited = await read(home, ...create, ...site, '--rate-limit', '30')
    expect(limited).toMatchObject({ publishable: true, rate_limit_per_minute: 30 })
    expect((await ev(home, 'keys')).stdout).toMatch(/ev_pub_\w{4}….*verify:form/)
    for (const [args, message] of [
      [[], '--allow-domain is empty; a publishable key needs'],
      [[...site, '--scopes', '*'], '--scopes cannot be combined with --publishable'],
    ] as const) {
      const refused = await ev(home, ...create, ...args)
      expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining(message)])
    }
  })

  test('creates a test key', async () => {
    const home = await homeWith('Shop')
    const { stdout } = await ev(home, 'keys', 'create', '--name', 'CI', '--test')
    expect(stdout).toMatch(/^ {2}ev_test_\w{38}$/m)
    expect(stdout).toContain('The key is a test key: all its requests are in the sandbox.')
    expect(await read(home, 'keys')).toMatchObject([{ name: 'CI', test: true }])
    const both = await ev(home, 'keys', 'create', '--name', 'a', '--test', '--publishable')
    expect(both.code).toBe(64)
  })

  test('requires --account if there are several', async () => {
    const home = await homeWith('Shop', 'Club')
    const create = ['keys', 'create', '--name', 'CI']
    const { code, stderr } = await ev(home, ...create)
    expect([code, stderr]).toEqual([64, expect.stringContaining('There are several accounts')])
    const [shop, club] = await read(home, 'accounts')
    expect(await read(home, ...create, '--account', 'Club')).toMatchObject({ account_id: club.id })
    expect(await read(home, ...create, '--account', shop.id)).toMatchObject({ account_id: shop.id })
    expect(await read(home, 'keys')).toHaveLength(2)
    expect(await read(home, 'keys', 'list', '--account', 'Shop')).toHaveLength(1)
    expect((await ev(home, ...create, '--account', 'Pub')).stderr).toContain(
      'Account Pub does not exist.',
    )
  })

  test('rotates a key; both secrets are valid during the grace period', async () => {
    const home = await homeWith('Shop')
    const old = await read(home, 'keys', 'create', '--name', 'CI')
    const { stdout } = await ev(home, 'keys', 'rotate', old.id, '--grace', '30m')
    expect(stdout).toContain('The old secret stays valid until 2')
    const text = /ev_live_\w{38}/.exec(stdout)?.[0] ?? ''
    const until = Date.parse(/stays valid until (\S+ \S+)/.exec(stdout)?.[1]?.concat('Z') ?? '')
    expect(until - systemClock.now()).toBeGreaterThan(28 * 60_000)
    expect(until - systemClock.now()).toBeLessThanOrEqual(30 * 60_000)
    expect(await statusesOf(home, old.key, text)).toEqual([200, 200])
    const last = await read(home, 'keys', 'rotate', old.id, '--grace', '0')
    expect(await statusesOf(home, old.key, text, last.key)).toEqual([401, 401, 200])
  })

  test.each([
    ['rotate', '--grace', '24h'],
    ['revoke', '--yes'],
  ])('ends the dashboard sessions of the key: %s', async (command, ...args) => {
    const home = await homeWith('Shop')
    const keys = [
      await read(home, 'keys', 'create', '--name', 'CI'),
      await read(home, 'keys', 'create', '--name', 'Other'),
    ]
    const service = await startService(home)
    const signIn = async (key: string) => {
      const body = new URLSearchParams({ key })
      const form = { method: 'POST', body, redirect: 'manual' } as const
      const response = await fetch(`${service.url}/sign-in`, form)
      return response.headers
        .getSetCookie()
        .map(cookie => cookie.split(';')[0])
        .join('; ')
    }
    const cookies = [await signIn(keys[0].key), await signIn(keys[1].key)]
    const pages = () =>
      Promise.all(
        cookies.map(async cookie => {
          const options = { headers: { cookie }, redirect: 'manual' } as const
          return (await fetch(`${service.url}/keys`, options)).status
        }),
      )
    expect(await pages()).toEqual([200, 200])
    expect((await ev(home, 'keys', command, keys[0].id, ...args)).code).toBe(0)
    await waitUntil(async () => (await pages())[0] !== 200)
    expect(await pages()).toEqual([303, 200])
    await service.end('SIGTERM')
  })

  test('revokes a key, once', async () => {
    const home = await homeWith('Shop')
    const { id, key } = await read(home, 'keys', 'create', '--name', 'CI')
    const refused = await ev(home, 'keys', 'revoke', id, '--yes')
    expect(refused).toMatchObject({
      code: 64,
      stderr: expect.stringContaining(`ev keys revoke ${id} --force`),
    })
    const forced = await ev(home, 'keys', 'revoke', id, '--force', '--yes')
    expect(forced.stdout).toContain(`Revoked ${id} "CI"`)
    expect(await statusesOf(home, key)).toEqual([401])
    const again = await ev(home, 'keys', 'revoke', id, '--yes')
    expect(again).toMatchObject({
      code: 66,
      stderr: expect.stringContaining(`Key ${id} does not exist.`),
    })
    expect((await ev(home, 'keys')).stdout).toContain('No keys.')
  })

  test('rejects unknown commands', async () => {
    const { code, stderr } = await ev(emptyFolder(), 'keys', 'show')
    expect([code, stderr]).toEqual([64, expect.stringContaining('Unknown command "ev keys show"')])
  })
})

describe.concurrent('ev accounts', { timeout: 60_000 }, () => {
  test('creates an account with the default plan, unless another is given', async () => {
    const home = emptyFolder()
    expect((await ev(home, 'accounts')).stdout).toContain(`No accounts in ${home}/data.`)
    expect(await read(home, 'accounts', 'create', '--name', 'Shop')).toMatchObject({
      name: 'Shop',
      plan: 'enterprise',
    })
    await ev(home, 'accounts', 'create', '--name', 'Club', '--plan', 'free')
    const all = await read(home, 'accounts')
    expect(all.map((one: { plan: string; keys: number }) => [one.plan, one.keys])).toEqual([
      ['enterprise', 0],
      ['free', 0],
    ])
    const namesake = await ev(home, 'accounts', 'create', '--name', 'Shop')
    expect(namesake.stderr).toContain('There is already an account "Shop": acc_')
  })

  test('changes the plan of an account to an existing one', async () => {
    const home = await homeWith('Shop')
    const plans = { tiny: { requests: 3, per: 'minute' } }
    writeFileSync(join(home, 'ev.config.json'), JSON.stringify({ plans }))
    expect(await read(home, 'accounts', 'set-plan', 'Shop', 'tiny')).toMatchObject({ plan: 'tiny' })
    expect(await read(home, 'accounts')).toMatchObject([{ plan: 'tiny' }])
    const { code, stderr } = await ev(home, 'accounts', 'set-plan', 'Shop', 'huge')
    expect(code).toBe(64)
    expect(stderr).toContain(
      'The plan is "huge"; it must be one of free, starter, professional, enterprise, tiny.',
    )
  })
})

describe.concurrent('ev backup', { timeout: 60_000 }, () => {
  test('copies a consistent snapshot while another process writes', async () => {
    const home = await homeWith('Shop')
    const { key } = await read(home, 'keys', 'create', '--name', 'CI')
    const running = { done: false }
    const adding = async () => {
      for (let n = 0; !running.done; n++) await ev(home, 'accounts', 'create', '--name', `A${n}`)
    }
    const added = adding()
    const copied = await read(home, 'backup', 'copy/../copy.sqlite')
    running.done = true
    await added
    expect(copied).toMatchObject({ keys: 1, lists: 0, secret_file: null })
    expect(statSync(join(home, 'copy.sqlite')).mode & 0o777).toBe(0o600)
    expect(readdirSync(home).filter(name => name.endsWith('.partial'))).toEqual([])
    expect((await ev(home, 'restore', 'copy.sqlite', '--force')).code).toBe(0)
    // Each account is created with its entry in the audit log.
    const accounts = await read(home, 'accounts')
    expect(accounts).toHaveLength(copied.accounts)
    const log = await read(home, 'audit')
    expect(log.filter(isCreation)).toHaveLength(copied.accounts)
    expect(await statusesOf(home, key)).toEqual([200])
  })

  test('overwrites a file only with --force', async () => {
    const home = await homeWith('Shop')
    writeFileSync(join(home, 'copy'), 'mine')
    const refused = await ev(home, 'backup', 'copy')
    expect(refused).toMatchObject({ code: 73, stderr: expect.stringContaining('--force') })
    expect(readFileSync(join(home, 'copy'), 'utf8')).toBe('mine')
    const { code, stdout } = await ev(home, 'backup', 'copy', '--force')
    expect(code).toBe(0)
    expect(stdout).toContain('1 account with 0 keys and 0 webhooks')
    expect(stdout).toContain("To restore it, stop every ev process and run: ev restore 'copy'")
    expect(readFileSync(join(home, 'copy'), 'latin1').startsWith('SQLite format 3')).toBe(true)
    expect((await ev(home, 'backup', 'data/ev.sqlite', '--force')).stderr).toContain('itself')
  })

  test('says that the copy has no secret, and names its file', async () => {
    const home = await homeWith('Shop')
    writeFileSync(join(home, 'data/secret'), 'x'.repeat(50))
    expect((await ev(home, 'backup', 'copy')).stderr).toContain(
      `because it is not encrypted. Store ${home}/data/secret separately`,
    )
  })

  test('reports a missing or damaged database and a missing folder, and leaves no file', async () => {
    const home = emptyFolder()
    const absent = await ev(home, 'backup', 'copy')
    expect(absent).toMatchObject({
      code: 66,
      stderr: expect.stringContaining('nothing to back up'),
    })
    writeFileSync(join(home, 'data/ev.sqlite'), 'no database at all'.repeat(100))
    expect(await ev(home, 'backup', 'copy')).toMatchObject({ code: 74 })
    const well = await homeWith('Shop')
    expect(await ev(well, 'backup', 'nowhere/copy')).toMatchObject({ code: 73 })
    expect(readdirSync(home)).toEqual(['data'])
  })
})

describe('durations and dates', () => {
  const DAY = 86_400_000

  test.each([
    ['90d', 90 * DAY],
    ['12h', DAY / 2],
    ['1970-01-02', DAY],
    ['1970-01-01T12:00:00+01:00', 11 * 3_600_000],
    [undefined, null],
  ])('--expires %s is %s', (given, until) => {
    expect(parseExpiry(given, 0)).toBe(until)
  })

  test.each(['0d', '-1d', 'soon', '90', '1969-12-31', '4000d', '1970-02-31', '1e3d'])(
    '--expires %s is rejected',
    given => expect(() => parseExpiry(given, 0)).toThrow('it takes a future time'),
  )

  test('--grace takes up to a week, or 0', () => {
    expect([parseGrace('0', 7 * DAY), parseGrace('7d', 7 * DAY)]).toEqual([0, 7 * DAY])
    for (const given of ['8d', '24', '', '2030-01-01']) {
      expect(() => parseGrace(given, 7 * DAY)).toThrow('it takes a duration from 0 to 7d')
    }
  })
})
