import { describe, expect, test } from 'vitest'
import { homeWith, read } from '../../support/cli-webhooks.ts'
import { emptyFolder, type Running, startEv } from '../../support/ev-process.ts'
import { startService } from '../../support/service-process.ts'

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

type Webhook = { readonly id: string; readonly url: string }

const webhooksIn = (home: string): Promise<Webhook[]> => read(home, 'webhooks')

describe('ev webhooks listen', () => {
  test('deletes only the webhook that a killed listener at the same URL left', async () => {
    const home = await homeWith('Shop')
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
    const home = await homeWith('Shop')
    const listener = await listenerIn(home)
    listener.child.stdout?.destroy()
    await fetch(listener.url, { method: 'POST', body: 'an event' })
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
