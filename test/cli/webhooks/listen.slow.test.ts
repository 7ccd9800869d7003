import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createIpPolicy } from '../../../src/engine/smtp/dial-policy.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import { createSecretBox } from '../../../src/platform/secret-box.ts'
import { listWebhooks, type Webhook } from '../../../src/webhooks/endpoint-store.ts'
import { eventBody } from '../../../src/webhooks/event.ts'
import { createHttpsTransport } from '../../../src/webhooks/https-transport.ts'
import { signedHeaders } from '../../../src/webhooks/signature.ts'
import type { WebhookTransport } from '../../../src/webhooks/transport.ts'
import { homeWith, inDatabase } from '../../support/cli-webhooks.ts'
import { emptyFolder, type Running, startEv } from '../../support/ev-process.ts'
import { startService } from '../../support/service-process.ts'
import { zone } from '../../support/zone.ts'

type Listener = Running & {
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
  let setting = ''
  running.child.stderr?.on('data', (text: string) => {
    setting += text
  })
  await running.printed('\n\n', 'stderr')
  const url = /http:\/\/[^/]+\//.exec(setting)?.[0] ?? ''
  return { ...running, url, setting }
}

/** Sends like a service that was started with the printed setting. */
function openTransport(): WebhookTransport {
  const mayDial = createIpPolicy(['127.0.0.1'])
  const post = createHttpsTransport({ clock: systemClock, resolver: zone(), mayDial })
  onTestFinished(() => post.close())
  return post
}

const DATA = { job_id: 'job_1', total: 2, download_url: 'https://ev.example/\u202e' }

/** Builds an event signed with these secrets. */
function signedRequest({ url }: Pick<Listener, 'url'>, ...secrets: [string, ...string[]]) {
  const at = systemClock.now()
  const kind = 'batch.completed'
  const body = eventBody({ id: 'evt_one', kind, at, data: DATA, sandbox: true })
  return { url, body, headers: signedHeaders(body, { eventId: 'evt_one', at, secrets }) }
}

const webhooksIn = (home: string): Promise<Webhook[]> =>
  inDatabase(home, database => listWebhooks(database, 'acc_a'))

async function secretIn(home: string): Promise<string> {
  const secretBox = createSecretBox(
    readFileSync(join(home, 'data/secret'), 'utf8').trim(),
    systemRandom,
  )
  return secretBox.decrypt((await webhooksIn(home))[0]?.secret ?? '')
}

describe('ev webhooks listen', () => {
  test('deletes only the webhook that a killed listener at the same URL left', async () => {
    const home = await homeWith('acc_a')
    const killed = await listenerIn(home)
    const other = await listenerIn(home)
    killed.child.kill('SIGKILL')
    await killed.ended
    const [left, kept] = await webhooksIn(home)
    const { port } = new URL(killed.url)
    const next = await listenerIn(home, ['--port', port])
    expect(next.url).toBe(killed.url)
    const now = await webhooksIn(home)
    expect(now.map(({ url }) => url).sort()).toEqual([killed.url, other.url].sort())
    expect(now.map(({ id }) => id)).toContain(kept?.id)
    expect(now.map(({ id }) => id)).not.toContain(left?.id)
  })

  test('deletes its webhook when stdout is closed', async () => {
    const home = await homeWith('acc_a')
    const listener = await listenerIn(home)
    listener.child.stdout?.destroy()
    await openTransport().send(signedRequest(listener, await secretIn(home)))
    expect(await listener.ended).toMatchObject({ code: 74, signal: null })
    expect(await webhooksIn(home)).toEqual([])
  })

  test('receives an event of a service with the printed setting, with both signatures', async () => {
    const home = emptyFolder()
    const allow = ['--webhook-allow-ranges', '127.0.0.1']
    const service = await startService(home, allow)
    const listener = await listenerIn(home, ['--json'])
    const asked = await fetch(`${service.url}/v1/verify/batch`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${service.key}`,
        'X-EV-Sandbox': 'true',
        'Content-Type': 'application/json',
      },
      body: JSON.stringify({ emails: ['valid@a.test', 'risky@a.test'] }),
    })
    const { job_id } = (await asked.json()) as { job_id: string }
    await listener.printed('\n')
    listener.child.kill('SIGTERM')
    const { code, stdout } = await listener.ended
    expect(JSON.parse(stdout)).toMatchObject({
      event: 'batch.completed',
      fault: null,
      body: { data: { job_id, total: 2 } },
      signatures: { 'x-ev-signature': true, 'webhook-signature': true },
    })
    expect([code, (await service.end('SIGTERM')).code]).toEqual([0, 0])
  })
})
