import { describe, expect, test } from 'vitest'
import { runEv } from '../support/cli.ts'
import { startService } from '../support/cli-service.ts'
import { homeWith } from '../support/cli-webhooks.ts'

const BASE = ['--base-url', 'https://ev.example.com']

const ev = (home: string, ...args: string[]) =>
  runEv(['people', ...args, '--data-dir', 'data'], { home, offline: true })

const read = async (home: string, ...args: string[]) =>
  JSON.parse((await ev(home, ...args, '--json')).stdout)

const invite = (home: string, email: string, ...more: string[]) =>
  ev(home, 'invite', '--name', 'Ann Lee', '--email', email, ...BASE, ...more)

describe.concurrent('ev people', { timeout: 60_000 }, () => {
  test('invites a person with a link that is shown once', async () => {
    const home = await homeWith('Shop')
    expect((await ev(home)).stdout).toContain('No people.')
    const { code, stdout } = await invite(home, 'Ann@Shop.Example', '--role', 'admin')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^Link for per_\w{16} "Ann Lee" <ann@shop\.example>, admin of account acc_\w+:/,
    )
    const link = /^ {2}https:\/\/ev\.example\.com\/invitation\/[a-z0-9]{40}$/m
    expect(stdout).toMatch(link)
    expect((await ev(home)).stdout).toMatch(/per_\w+ +ann@shop\.example +admin .* invited +Ann Lee/)
    expect(await read(home, 'list')).toEqual([
      {
        id: expect.stringMatching(/^per_/),
        account_id: expect.stringMatching(/^acc_/),
        name: 'Ann Lee',
        email: 'ann@shop.example',
        role: 'admin',
        joined: false,
        two_factor: false,
        identity_provider: false,
        created_at: expect.stringMatching(/Z$/),
        invitation_expires_at: expect.stringMatching(/Z$/),
        last_signed_in_at: null,
      },
    ])
    const renewed = await ev(home, 'link', 'ann@shop.example', ...BASE)
    expect(renewed.stdout).toMatch(link)
    expect(link.exec(renewed.stdout)?.[0]).not.toBe(link.exec(stdout)?.[0])
  })

  test('changes a role, removes the second factor and removes a person', async () => {
    const home = await homeWith('Shop')
    await invite(home, 'ann@shop.example')
    const { stdout } = await ev(home, 'set-role', 'ann@shop.example', 'viewer')
    expect(stdout).toMatch(/^Changed the role of per_\w+ "Ann Lee" from member to viewer\.$/m)
    for (const command of ['reset-two-factor', 'remove']) {
      const unconfirmed = await ev(home, command, 'ann@shop.example')
      expect([unconfirmed.code, unconfirmed.stderr]).toEqual([
        64,
        expect.stringContaining('To confirm, add --yes.'),
      ])
      expect((await ev(home, command, 'ann@shop.example', '--yes')).code).toBe(0)
    }
    expect(await read(home)).toEqual([])
    const log = await runEv(['audit', '--json', '--data-dir', 'data'], { home })
    const entries = JSON.parse(log.stdout) as { action: string; actor: string }[]
    expect(entries.map(({ action, actor }) => [action, actor]).slice(0, 4)).toEqual([
      ['person.removed', 'command_line'],
      ['person.totp_disabled', 'command_line'],
      ['person.updated', 'command_line'],
      ['person.invited', 'command_line'],
    ])
  })

  test('requires a second factor, once an admin has joined', async () => {
    const home = await homeWith('Shop')
    const { stdout } = await invite(home, 'ann@shop.example', '--role', 'admin')
    const early = await ev(home, 'require-two-factor', 'on')
    expect([early.code, early.stderr]).toEqual([
      64,
      expect.stringContaining('No admin of the account has accepted an invitation yet.'),
    ])
    const service = await startService(home)
    const path = /\/invitation\/\w+/.exec(stdout)?.[0] ?? ''
    const password = 'correct horse battery'
    const body = new URLSearchParams({ password, repeated: password })
    const joined = await fetch(`${service.url}${path}`, {
      method: 'POST',
      body,
      redirect: 'manual',
    })
    expect(joined.status).toBe(303)
    await service.end('SIGTERM')
    const on = await ev(home, 'require-two-factor', 'on', '--account', 'Shop')
    expect([on.code, on.stdout]).toEqual([
      0,
      expect.stringMatching(/^A second factor is now required in account acc_\w+ "Shop"/),
    ])
    expect(await read(home, 'require-two-factor', 'on')).toMatchObject({
      two_factor_required: true,
    })
    expect((await ev(home, 'require-two-factor', 'off')).stdout).toContain('is now optional')
    const wrong = await ev(home, 'require-two-factor', 'yes')
    expect([wrong.code, wrong.stderr]).toEqual([
      64,
      'error: The first argument is "yes"; it takes on or off.\n',
    ])
  })

  test('refuses what it cannot do with an explanation', async () => {
    const home = await homeWith('Shop', 'Other')
    await invite(home, 'ann@shop.example', '--account', 'Shop')
    await invite(home, 'ann@shop.example', '--account', 'Other')
    for (const [args, sentence] of [
      [['remove', 'ann@shop.example', '--yes'], 'Several accounts have a person'],
      [['remove', 'eve@shop.example', '--yes'], 'does not exist. To list people'],
      [['set-role', 'ann@shop.example', 'owner'], 'Unknown role "owner"'],
    ] as const) {
      const { code, stderr } = await ev(home, ...args)
      expect([code === 0, stderr]).toEqual([false, expect.stringContaining(sentence)])
    }
    const again = await invite(home, 'ann@shop.example', '--account', 'Shop')
    expect(again.stderr).toContain('For a new link, run "ev people link ann@shop.example".')
    const invalid = await invite(home, 'nonsense', '--account', 'Shop')
    expect(invalid.code).toBe(64)
  })
})
