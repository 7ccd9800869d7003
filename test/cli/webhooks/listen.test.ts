import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { eventBody } from '../../../src/webhooks/event.ts'
import { EVENT_KINDS } from '../../../src/webhooks/event-types.ts'
import { signedHeaders } from '../../../src/webhooks/signature.ts'
import { emptyFolder, type RunningCli, runEv, startEv } from '../../support/cli.ts'
import { HERE, homeWith, read } from '../../support/cli-webhooks.ts'

type Listener = RunningCli & {
  readonly url: string
  readonly setting: string
}

const LISTEN = ['webhooks', 'listen', '--data-dir', 'data', '--port']

/** Starts a listener on a free port and reads its URL from its output. */
async function listenerIn(
  home: string,
  args: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<Listener> {
  const running = startEv([...LISTEN, '0', ...args], { home, environment })
  await running.printed('\n\n', 'stderr')
  const setting = running.stderr
  const url = /http:\/\/[^/]+\//.exec(setting)?.[0] ?? ''
  return { ...running, url, setting }
}

/** Sends a request as a service does, and returns its status. */
const post = async ({ url, body, headers }: ReturnType<typeof signedRequest>): Promise<number> =>
  (await fetch(url, { method: 'POST', body, headers })).status

const DATA = { job_id: 'job_1', total: 2, download_url: 'https://ev.example/\u202e' }

/** Builds an event signed with these secrets. */
function signedRequest({ url }: Pick<Listener, 'url'>, ...secrets: [string, ...string[]]) {
  const at = systemClock.now()
  const kind = 'batch.completed'
  const body = eventBody({ id: 'evt_one', kind, at, data: DATA, sandbox: true })
  return { url, body, headers: signedHeaders(body, { eventId: 'evt_one', at, secrets }) }
}

const webhooksIn = (home: string) => read(home, 'webhooks')

/** A listener without a webhook, which verifies with the secret `whsec_b25l`. */
const bareListener = (...args: string[]) =>
  listenerIn(emptyFolder(), ['--no-register', ...args], { EV_WEBHOOK_SECRET: 'whsec_b25l' })

describe('ev webhooks listen', { timeout: 60_000 }, () => {
  test('creates a webhook for all events, prints them, and deletes it at the end', async () => {
    const home = await homeWith('Shop')
    const listener = await listenerIn(home)
    expect(await webhooksIn(home)).toMatchObject([
      { url: listener.url, events: [...EVENT_KINDS], active: true },
    ])
    const [{ id }] = await webhooksIn(home)
    const sent = await runEv(['webhooks', 'test', id, ...HERE, '--data-dir', 'data'], { home })
    expect(sent.stdout).toContain('responded with 200')
    listener.signal('SIGINT')
    const { code, stdout } = await listener.ended
    expect(stdout).toMatch(
      /^\d\d:\d\d:\d\d {2}webhook\.test {2}evt_\w+ {2}.*both signatures valid\n/,
    )
    expect(code).toBe(0)
    expect(await webhooksIn(home)).toEqual([])
  })

  test('prints a whole event in one line of JSON, with the fault of its signatures', async () => {
    const listener = await bareListener('--json', '--status', '503')
    const good = signedRequest(listener, 'whsec_b25l')
    const rotated = signedRequest(listener, 'whsec_bmV3', 'whsec_b25l')
    const foreign = { ...signedRequest(listener, 'whsec_bmV3'), body: 'no event' }
    for (const request of [good, rotated, foreign]) {
      expect(await post(request)).toBe(503)
    }
    listener.signal('SIGTERM')
    const { code, stdout } = await listener.ended
    const lines = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(lines).toMatchObject([
      {
        event: 'batch.completed',
        event_id: 'evt_one',
        answered: 503,
        fault: null,
        signatures: { 'x-ev-signature': true, 'webhook-signature': true },
        headers: { 'webhook-id': 'evt_one' },
        body: JSON.parse(good.body),
      },
      {
        signatures: { 'x-ev-signature': false, 'webhook-signature': true },
        fault: 'X-EV-Signature does not match this body and secret.',
      },
      {
        event: null,
        body: 'no event',
        signatures: { 'x-ev-signature': false, 'webhook-signature': false },
      },
    ])
    expect(code).toBe(0)
  })

  test('prints data without control and formatting characters', async () => {
    const listener = await bareListener()
    expect(await post(signedRequest(listener, 'whsec_b25l'))).toBe(200)
    listener.signal('SIGTERM')
    const { stdout } = await listener.ended
    expect(stdout).toContain('batch.completed  evt_one  sandbox  both signatures valid\n')
    expect(stdout).toContain(
      '{"job_id":"job_1","total":2,"download_url":"https://ev.example/\uFFFD"}',
    )
  })

  test('prints the setting that the service needs, and a test command', async () => {
    const home = await homeWith('Shop')
    const { setting, url } = await listenerIn(home)
    const [webhook] = await webhooksIn(home)
    expect(setting).toContain(`Listening on ${url} for all events`)
    expect(setting).toContain('  --webhook-allow-ranges 127.0.0.1\n')
    expect(setting).toContain('  EV_WEBHOOK_ALLOW_RANGES=127.0.0.1\n')
    const args = /ev (webhooks test .*)\n/.exec(setting)?.[1]?.split(' ') ?? []
    expect(args[2]).toBe(webhook?.id)
    const { code, stdout } = await runEv([...args, '--data-dir', 'data'], { home })
    expect([code, stdout]).toEqual([0, expect.stringContaining('responded with 200')])
  })

  test('verifies with the secrets in the environment if it creates no webhook', async () => {
    const home = emptyFolder()
    const command = ['--no-register', '--json']
    const secrets = { EV_WEBHOOK_SECRET: 'whsec_b25l,whsec_dHdv' }
    const listener = await listenerIn(home, command, secrets)
    expect(listener.setting).not.toContain('whsec_')
    await post(signedRequest(listener, 'whsec_dHdv'))
    listener.signal('SIGTERM')
    expect(JSON.parse((await listener.ended).stdout)).toMatchObject({ fault: null })
    const { code, stderr } = await runEv([...LISTEN, '0', '--no-register'], { home })
    expect([code, stderr]).toEqual([64, expect.stringContaining('EV_WEBHOOK_SECRET=whsec_…')])
  })

  test('rejects bodies that are too large', async () => {
    const listener = await bareListener('--json')
    const body = 'x'.repeat(1024 * 1024 + 1)
    const signed = signedRequest(listener, 'whsec_b25l')
    // The listener answers, or closes the connection before all was sent.
    expect(await post({ ...signed, body }).catch(() => 413)).toBe(413)
    expect(await post({ ...signed, body: body.slice(1) })).toBe(200)
    listener.signal('SIGTERM')
    expect((await listener.ended).stdout.trim().split('\n')).toHaveLength(1)
  })

  test('creates no webhook if it cannot listen', async () => {
    const home = await homeWith('Shop')
    const listener = await listenerIn(home)
    const { port } = new URL(listener.url)
    const { code, stderr } = await runEv([...LISTEN, port], { home })
    expect([code, stderr]).toEqual([74, expect.stringContaining('Another program uses it')])
    expect(await webhooksIn(home)).toHaveLength(1)
  })

  test.each([
    ['a bad port', ['65536'], '--port is "65536"; it takes a whole number from 0 to 65535.'],
    [
      'a bad status',
      ['0', '--status', '100'],
      '--status is "100"; it takes a whole number from 200 to 599',
    ],
    [
      'a host name to listen on',
      ['0', '--host', 'shop.example'],
      '--host is "shop.example"; it takes localhost, a loopback address',
    ],
  ])('rejects %s', async (_, args, message) => {
    const { code, stderr } = await runEv([...LISTEN, ...args], { home: emptyFolder() })
    expect([code, stderr]).toEqual([64, expect.stringContaining(message)])
  })
})
