import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { emptyFolder, type RunningCli, runEv, startEv } from '../../support/cli.ts'
import { request, startService } from '../../support/cli-service.ts'
import { HERE, homeWith, newKey, read } from '../../support/cli-webhooks.ts'
import { startReceiver } from '../../support/http-receiver.ts'
import { startMailServer } from '../../support/smtp-server.ts'
import { waitUntil } from '../../support/wait.ts'

const ARGS = ['serve', '--data-dir', 'data', '--listen', '127.0.0.1:0', '--helo', 'a.example.com']

/** A folder whose service could not send an event to a webhook that is gone, and had no time to alert. */
let made: string
let subject: string
beforeAll(async () => {
  const receiver = await startReceiver({ name: '127.0.0.1', answer: 410 })
  made = await homeWith('Shop')
  writeFileSync(join(made, 'ca.pem'), receiver.ca)
  const create = ['webhooks', 'create', '--url', receiver.url, '--events', '*', ...HERE]
  const { id } = await read(made, ...create)
  const key = await newKey(made)
  const service = await startService(made, [...HERE, '--webhook-ca-file', 'ca.pem'])
  const body = { emails: Array.from({ length: 11 }, (_, n) => `valid${n}@a.example`) }
  const headers = { 'X-EV-Sandbox': 'true' }
  expect((await request(service, key, '/v1/verify/bulk', { body, headers })).ok).toBe(true)
  await waitUntil(async () => !(await read(made, 'webhooks', 'show', id)).active)
  await service.end('SIGTERM')
  await receiver.close()
  const host = new URL(receiver.url).host
  const lost = '1 event could not be delivered'
  subject = `ev: the webhook to ${host} was disabled, ${lost} (${id})`
})

/** Starts a service on a copy of the folder. */
function startAgain(
  args: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): RunningCli {
  const home = emptyFolder()
  cpSync(join(made, 'data'), join(home, 'data'), { recursive: true })
  return startEv([...ARGS, ...args], { home, environment })
}

test('ev serve sends alerts through the configured mail server', async () => {
  const { port, taken } = await startMailServer()
  const running = startAgain([], {
    EV_NOTIFY_SMTP: `smtp://127.0.0.1:${port}`,
    EV_NOTIFY_FROM: 'ev@example.com',
    EV_NOTIFY_TO: 'ops@example.com',
  })
  await vi.waitFor(() => expect(taken).toHaveLength(1), { timeout: 30_000 })
  running.signal('SIGTERM')
  const { code, stderr } = await running.ended
  expect([code, taken.length]).toEqual([0, 1])
  expect(taken[0]).toMatchObject({ from: 'ev@example.com', to: ['ops@example.com'] })
  const source = taken[0]?.source.replace(/\r\n /g, ' ')
  expect(source).toContain(`Subject: ${subject}\r\n`)
  expect(stderr).not.toContain('could not be sent')
})

test('ev serve logs alerts if no mail server is configured', async () => {
  const running = startAgain()
  await running.printed(subject, 'stderr')
  running.signal('SIGTERM')
  const { code, stderr } = await running.ended
  expect(code).toBe(0)
  const lines = stderr.split('\n').filter(line => line.includes(subject))
  expect(lines.map(line => JSON.parse(line))).toMatchObject([
    {
      level: 'warn',
      webhookId: expect.stringMatching(/^wh_/),
      steps: expect.stringContaining('ev webhooks retry --since '),
    },
  ])
})

test('an unreachable mail server is logged without its password, and the service continues', async () => {
  const { port } = await startMailServer({ isPlain: true, login: 'ann:s3cret' })
  const running = startAgain(['--debug'], {
    EV_NOTIFY_SMTP: `smtp://ann:s3cret@127.0.0.1:${port}`,
    EV_NOTIFY_FROM: 'ev@example.com',
    EV_NOTIFY_TO: 'ops@example.com',
    EV_LOG: 'debug',
  })
  await running.printed('webhook alert could not be sent; will retry', 'stderr')
  running.signal('SIGTERM')
  const { code, stderr } = await running.ended
  expect(code).toBe(0)
  expect(stderr).toContain(`The mail server 127.0.0.1:${port} did not accept the mail`)
  expect(stderr).not.toMatch(/s3cret|ann:/)
})

test.each([
  [['--notify-smtp', 'smtp://mail.example'], '--notify-from is not'],
  [['--notify-from', 'ev@example.com'], '--notify-smtp is not'],
  [['--notify-to', 'ops@example.com'], '--notify-smtp is not'],
])('ev serve does not start with incomplete mail settings: %j', async (args, message) => {
  const { code, stdout, stderr } = await runEv([...ARGS, ...args], { home: emptyFolder() })
  expect([code, stdout]).toEqual([78, ''])
  expect(stderr).toMatch(/^error: Alerts by email need .*\n$/)
  expect(stderr).toContain(message)
})
