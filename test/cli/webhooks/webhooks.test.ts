import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifyWebhook } from '../../../src/client/webhook-signature.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { WEBHOOKS_MAX } from '../../../src/webhooks/endpoint.ts'
import { emptyFolder, runEv } from '../../support/cli.ts'
import { request, startService } from '../../support/cli-service.ts'
import { ev, HERE, homeWith, newKey, read } from '../../support/cli-webhooks.ts'
import { type Receiver, startReceiver } from '../../support/http-receiver.ts'
import { waitUntil } from '../../support/wait.ts'

const URL_HERE = 'https://127.0.0.1:8443/hook'
const CREATE = ['webhooks', 'create', '--url', URL_HERE, '--events', 'batch.completed', ...HERE]

describe.concurrent('ev webhooks', { timeout: 60_000 }, () => {
  test('prints how to create an account if there is none, and creates nothing', async () => {
    const home = emptyFolder()
    for (const args of [['webhooks'], CREATE, ['webhooks', 'test', 'wh_a']]) {
      const { code, stdout, stderr } = await ev(home, ...args)
      expect([code, stdout]).toEqual([66, ''])
      expect(stderr).toContain(`No accounts in ${home}/data yet.`)
    }
    expect(readdirSync(join(home, 'data'))).toEqual([])
  })

  test('shows a secret once at creation, and only its end later', async () => {
    const home = await homeWith('Shop')
    const { code, stdout } = await ev(home, ...CREATE)
    expect(code).toBe(0)
    const secret = /whsec_\w{32}/.exec(stdout)?.[0] ?? ''
    const [{ id }] = await read(home, 'webhooks')
    expect(stdout).toContain('compute the HMAC-SHA256 of the raw body')
    expect(stdout).toContain(`To send a test event, run "ev webhooks test ${id}".`)
    for (const args of [['webhooks'], ['webhooks', 'show', id]]) {
      const shown = (await ev(home, ...args)).stdout
      expect(shown).toContain(`…${secret.slice(-4)}`)
      expect(shown).not.toContain(secret.slice(6, 20))
    }
    expect(readFileSync(join(home, 'data/ev.sqlite')).includes(secret)).toBe(false)
  })

  test('creates one with the given options, and shows it as the HTTP API does', async () => {
    const home = await homeWith('Shop')
    const more = ['--description', ' for the shop ', '--inactive']
    const made = await read(home, ...CREATE, ...more)
    expect(made).toMatchObject({
      account_id: expect.stringMatching(/^acc_/),
      url: URL_HERE,
      events: ['batch.completed'],
      description: 'for the shop',
      active: false,
      secret: expect.stringMatching(/^whsec_/),
    })
    const { secret: _, ...rest } = made
    expect(await read(home, 'webhooks')).toEqual([rest])
    expect(await read(home, 'webhooks', 'show', made.id)).toEqual(rest)
  })

  test('changes the given fields only; header values are not shown', async () => {
    const home = await homeWith('Shop')
    const header = ['--header', 'Authorization: Bearer 4f9c21', '--header', 'X-B:b']
    const { id } = await read(home, ...CREATE, '--description', 'shop', ...header)
    const args = ['webhooks', 'change', id, '--events', '*', '--remove-header', 'X-B', ...HERE]
    const { code, stdout } = await ev(home, ...args, '--header', 'X-C: c:d')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^ {2}headers +Authorization, X-C \(values hidden\)$/m)
    expect(stdout).toMatch(/^ {2}events +all events$/m)
    expect(stdout).toMatch(/^ {2}description +shop$/m)
    expect(stdout).not.toContain('4f9c21')
    expect(readFileSync(join(home, 'data/ev.sqlite')).includes('4f9c21')).toBe(false)
    const url = 'https://127.0.0.1:9443/hook'
    const moved = await read(home, 'webhooks', 'change', id, '--url', url, ...HERE)
    expect(moved).toMatchObject({ url, header_names: [] })
    expect(await read(home, 'webhooks', 'change', id, '--description', '', ...HERE)).toMatchObject({
      url,
      description: null,
    })
  })

  test.each([
    ['nothing', [], 'There is nothing to change. Give at least one of --url'],
    ['a header without a colon', ['--header', 'X-A'], '--header has no colon'],
    ['a reserved header', ['--header', 'Host: a'], '--header has "Host", which is not allowed.'],
  ])('does not change one with %s', async (_, args, message) => {
    const home = await homeWith('Shop')
    const { id } = await read(home, ...CREATE)
    const { code, stderr } = await ev(home, 'webhooks', 'change', id, ...args, ...HERE)
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)])
  })

  test('subscribes to all events with *', async () => {
    const home = await homeWith('Shop')
    const args = ['webhooks', 'create', '--url', URL_HERE, '--events', '*', ...HERE]
    expect((await read(home, ...args)).events).toContain('quota.exceeded')
    expect((await ev(home, 'webhooks')).stdout).toMatch(/ enabled +all events +https:/)
  })

  test.each([
    [
      'a URL without TLS',
      ['--url', 'http://app.example/'],
      'which is not allowed. It must begin with https://.',
    ],
    [
      'a URL on a private network',
      ['--url', 'https://10.0.0.7/'],
      'is not public. To allow it, set --webhook-allow-ranges',
    ],
    [
      'a URL with a direction override',
      ['--url', 'https://localhost/\u202e'],
      'It contains spaces or control characters.',
    ],
    ['an unknown event', ['--events', 'batch.done'], 'Unknown event "batch.done". Events: batch'],
    ['no event', ['--events', ''], 'Unknown event "". Events: batch'],
    [
      'a long description',
      ['--description', 'x'.repeat(501)],
      '--description has 501 characters; it takes up to 500.',
    ],
  ])('does not create one with %s', async (_, args, message) => {
    const { code, stderr } = await ev(await homeWith('Shop'), ...CREATE, ...args)
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('\u202e')
    expect(code).toBe(64)
  })

  test('does not exceed the limit of an account', async () => {
    const home = await homeWith('Shop')
    const key = await newKey(home)
    const service = await startService(home, HERE)
    const body = { url: URL_HERE, events: ['batch.completed'] }
    for (let n = 0; n < WEBHOOKS_MAX; n++) {
      expect((await request(service, key, '/v1/webhooks', { body })).status).toBe(201)
    }
    const { code, stderr } = await ev(home, ...CREATE)
    expect([code, stderr]).toEqual([
      64,
      expect.stringContaining('50 webhooks, which is the maximum'),
    ])
    await service.end('SIGTERM')
  })

  test('requires --account if there are several', async () => {
    const home = await homeWith('Shop', 'Club')
    const refused = await ev(home, ...CREATE)
    expect(refused).toMatchObject({ code: 64, stderr: expect.stringContaining('several accounts') })
    const [shop, club] = await read(home, 'accounts')
    const made = await read(home, ...CREATE, '--account', 'Club')
    expect(made.account_id).toBe(club.id)
    expect(await read(home, 'webhooks')).toHaveLength(1)
    expect(await read(home, 'webhooks', 'list', '--account', shop.id)).toEqual([])
    expect(await read(home, 'webhooks', 'show', made.id)).toMatchObject({ id: made.id })
  })

  test('creates no secret if a running service has another one', async () => {
    const home = await homeWith('Shop')
    const elsewhere = { EV_SECRET: 'of-the-unit-0123456789' }
    const service = await startService(home, [], { environment: elsewhere })
    for (const args of [CREATE, ['webhooks', 'listen', '--port', '0']]) {
      const { code, stdout, stderr } = await runEv([...args, '--data-dir', 'data'], { home })
      expect([code, stdout]).toEqual([78, ''])
      expect(stderr).toContain(
        `The "ev serve" that is running in ${home}/data has its secret elsewhere.`,
      )
      expect(stderr).toContain('Set EV_SECRET, EV_SECRET_FILE or --secret-file to the same value')
    }
    expect(readdirSync(join(home, 'data'))).not.toContain('secret')
    expect(await read(home, 'webhooks')).toEqual([])
    const args = [...CREATE, '--json', '--data-dir', 'data']
    const made = await runEv(args, { home, environment: elsewhere })
    expect(made).toMatchObject({ code: 0, stderr: '' })
    await service.end('SIGTERM')
    const { code, stderr } = await ev(home, 'webhooks', 'rotate', JSON.parse(made.stdout).id)
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('The secret that is set here cannot decrypt stored values.'),
    ])
  })

  test('disables, enables and deletes one', async () => {
    const home = await homeWith('Shop')
    const { id } = await read(home, ...CREATE)
    expect(await read(home, 'webhooks', 'disable', id)).toMatchObject({ active: false })
    expect((await ev(home, 'webhooks', 'enable', id)).stdout).toContain(
      `Webhook ${id} to ${URL_HERE} is enabled`,
    )
    expect(await read(home, 'webhooks', 'show', id)).toMatchObject({ active: true })
    expect((await ev(home, 'webhooks', 'delete', id, '--yes')).stdout).toContain(
      'Nothing is sent to it any',
    )
    expect(await read(home, 'webhooks')).toEqual([])
    for (const command of ['show', 'rotate', 'enable', 'disable', 'delete', 'test', 'deliveries']) {
      const { code, stderr } = await ev(home, 'webhooks', command, id)
      expect([command, code, stderr]).toEqual([
        ...[
          command,
          66,
          `error: Webhook ${id} does not exist. To list webhooks, run "ev webhooks".\n`,
        ],
      ])
    }
  })

  test('lists the commands after an unknown one', async () => {
    const { code, stderr } = await ev(emptyFolder(), 'webhooks', 'tset')
    expect([code, stderr]).toEqual([
      64,
      expect.stringContaining('Unknown command "ev webhooks tset"'),
    ])
  })
})

describe('ev webhooks test', { timeout: 60_000 }, () => {
  let receiver: Receiver
  beforeAll(async () => {
    receiver = await startReceiver({ name: '127.0.0.1' })
  })
  afterAll(() => receiver.close())

  const to = (home: string, ...args: string[]) =>
    runEv([...args, ...HERE, '--webhook-ca-file', 'ca.pem', '--data-dir', 'data'], { home })

  async function webhookHere(): Promise<{ home: string; id: string; secret: string }> {
    const home = await homeWith('Shop')
    writeFileSync(join(home, 'ca.pem'), receiver.ca)
    const create = ['webhooks', 'create', '--url', receiver.url, '--events', '*', ...HERE]
    return { home, ...(await read(home, ...create)) }
  }

  test('sends a signed event, and prints the response', async () => {
    const { home, id, secret } = await webhookHere()
    receiver.answer({ status: 202, body: 'thank\u001b[31m you' })
    const { code, stdout } = await to(home, 'webhooks', 'test', id)
    expect(stdout).toMatch(
      /^Delivered: https:\/\/127\.0\.0\.1:\d+\/hook responded with 202 after \d+ ms\.$/m,
    )
    expect(stdout).toContain('Response: thank\uFFFD[31m you')
    expect(code).toBe(0)
    const { body, headers } = receiver.received.at(-1) ?? { body: '', headers: {} }
    const event = await verifyWebhook(body, headers, secret)
    expect(event).toMatchObject({ event: 'webhook.test', data: { webhook_id: id } })
    expect(stdout).toContain(event.event_id)
    const [logged] = await read(home, 'webhooks', 'deliveries', id)
    expect(logged).toMatchObject({ status: 'delivered', trigger: 'test', status_code: 202 })
  })

  test('a rotated secret signs at once; the old one also signs during the grace period', async () => {
    const { home, id, secret } = await webhookHere()
    receiver.answer(200)
    const signers = async (...secrets: string[]) => {
      await to(home, 'webhooks', 'test', id)
      const { body, headers } = receiver.received.at(-1) ?? { body: '', headers: {} }
      const checks = secrets.map(one => verifyWebhook(body, headers, one).then(() => true))
      return Promise.all(checks.map(check => check.catch(() => false)))
    }
    const { stdout } = await ev(home, 'webhooks', 'rotate', id, '--grace', '30m')
    expect(stdout).toContain('The old secret also signs webhook-signature until 2')
    const second = /whsec_\w{32}/.exec(stdout)?.[0] ?? ''
    expect(await signers(secret, second)).toEqual([true, true])
    const { previous_secret_expires_at: until } = await read(home, 'webhooks', 'show', id)
    const graceMs = Date.parse(until) - systemClock.now()
    expect(graceMs).toBeGreaterThan(28 * 60_000)
    expect(graceMs).toBeLessThanOrEqual(30 * 60_000)
    expect((await ev(home, 'webhooks', 'show', id)).stdout).toMatch(/old secret +also signs until/)
    const last = await read(home, 'webhooks', 'rotate', id, '--grace', '0')
    expect(await signers(secret, second, last.secret)).toEqual([false, false, true])
    const refused = await ev(home, 'webhooks', 'rotate', id, '--grace', '8d')
    expect(refused.stderr).toContain('it takes a duration from 0 to 7d')
  })

  test('the list shows why a webhook is disabled, and since when one fails', async () => {
    const { home, id } = await webhookHere()
    receiver.answer(({ path }) => (path === '/gone' ? 410 : 500))
    const gone = new URL('/gone', receiver.url).href
    const off = await read(home, 'webhooks', 'create', '--url', gone, '--events', '*', ...HERE)
    const key = await newKey(home)
    const service = await startService(home, [...HERE, '--webhook-ca-file', 'ca.pem'])
    const body = { emails: Array.from({ length: 11 }, (_, n) => `valid${n}@a.example`) }
    const headers = { 'X-EV-Sandbox': 'true' }
    expect((await request(service, key, '/v1/verify/bulk', { body, headers })).ok).toBe(true)
    const listed = async () => (await ev(home, 'webhooks')).stdout
    let text = ''
    await waitUntil(async () => {
      text = await listed()
      return /failing since/.test(text) && /disabled by ev/.test(text)
    })
    await service.end('SIGTERM')
    expect(text).toMatch(
      new RegExp(`^${id} .* enabled, failing since 20\\d\\d-.* \\d\\d:\\d\\d `, 'm'),
    )
    expect(text).toMatch(new RegExp(`^${off.id} .* disabled by ev `, 'm'))
    expect((await ev(home, 'webhooks', 'show', off.id)).stdout).toMatch(
      /^ {2}state +disabled: It answered 410 Gone: it accepts no more events\.$/m,
    )
  })

  test('sends an example of any event with --event', async () => {
    const { home, id } = await webhookHere()
    receiver.answer(200)
    const { code, stdout } = await to(home, 'webhooks', 'test', id, '--event', 'quota.warning')
    expect([code, stdout]).toEqual([0, expect.stringContaining('responded with 200')])
    expect(JSON.parse(String(receiver.received.at(-1)?.body))).toMatchObject({
      event: 'quota.warning',
      sandbox: true,
      data: { threshold_percent: 80 },
    })
    const refused = await to(home, 'webhooks', 'test', id, '--event', 'batch.done')
    expect([refused.code, refused.stderr]).toEqual([64, expect.stringContaining('quota.warning')])
  })

  test('exits with 1 if it did not arrive, also for a disabled webhook', async () => {
    const { home, id } = await webhookHere()
    receiver.answer(500)
    await ev(home, 'webhooks', 'disable', id)
    const refused = await to(home, 'webhooks', 'test', id)
    expect(refused).toMatchObject({ code: 1, stderr: '' })
    expect(refused.stdout).toMatch(
      /^Not delivered: .* responded with 500 after \d+ ms\.\nIt answered 500/,
    )
    expect(refused.stdout).not.toContain('The settings of "ev serve" may differ')
    const { code, stdout } = await to(home, 'webhooks', 'test', id, '--json')
    expect([code, JSON.parse(stdout)]).toEqual([
      1,
      expect.objectContaining({ status: 'failed', status_code: 500, event: 'webhook.test' }),
    ])
    const after = (await ev(home, 'webhooks', 'show', id)).stdout
    expect(after).toMatch(/^ {2}state +disabled$/m)
  })

  test('connects to a private address only if it is allowed', async () => {
    const { home, id } = await webhookHere()
    const { code, stdout } = await ev(home, 'webhooks', 'test', id)
    expect(code).toBe(1)
    expect(stdout).toMatch(/^Not delivered: http\S+ after \d+ ms\.\n/)
    expect(stdout).toContain('The address 127.0.0.1 is not public.')
    expect(stdout).toContain(
      'The settings of "ev serve" may differ, such as --webhook-allow-ranges',
    )
  })

  test('names a CA file that cannot be read', async () => {
    const { home, id } = await webhookHere()
    writeFileSync(join(home, 'ca.pem'), 'no certificate')
    const { code, stderr } = await to(home, 'webhooks', 'test', id)
    expect([code, stderr]).toEqual([
      78,
      expect.stringContaining(`cannot be read from ${home}/ca.pem`),
    ])
  })
})
