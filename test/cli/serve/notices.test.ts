import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { createAccount } from '../../../src/accounts/account-store.ts'
import { openDatabase, write } from '../../../src/db/database.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { queueFailureAlert } from '../../../src/webhooks/alert-store.ts'
import { createWebhook } from '../../../src/webhooks/endpoint-store.ts'
import { emptyFolder, runEv, startEv } from '../../support/cli.ts'
import { startMailServer } from '../../support/smtp-server.ts'

/** Creates a data directory with a failed webhook and no alert yet. */
async function createHomeWithFailure(): Promise<string> {
  const home = emptyFolder()
  const database = await openDatabase(`sqlite:${join(home, 'data/ev.sqlite')}`, systemClock)
  const now = systemClock.now()
  await write(database, async trx => {
    await createAccount(trx, { id: 'acc_a', name: 'Shop', plan: 'free', now })
    await createWebhook(trx, {
      id: 'wh_a',
      accountId: 'acc_a',
      url: 'https://hook.example/',
      events: [],
      active: true,
      description: null,
      secret: 's',
      secretHint: 's',
      createdAt: now,
    })
    const failed = { events: 2, error: 'The receiver answered 500.' }
    await queueFailureAlert(trx, { webhookId: 'wh_a', accountId: 'acc_a', now, ...failed })
  })
  await database.close()
  return home
}

const ARGS = ['serve', '--data-dir', 'data', '--listen', '127.0.0.1:0', '--helo', 'a.example.com']
const SUBJECT = 'ev: 2 events could not be delivered to hook.example (wh_a)'

test('ev serve sends alerts through the configured mail server', { timeout: 60_000 }, async () => {
  const home = await createHomeWithFailure()
  const { port, taken } = await startMailServer()
  const environment = {
    EV_NOTIFY_SMTP: `smtp://127.0.0.1:${port}`,
    EV_NOTIFY_FROM: 'ev@example.com',
    EV_NOTIFY_TO: 'ops@example.com',
  }
  const { signal, ended } = startEv(ARGS, { home, environment })
  await vi.waitFor(() => expect(taken).toHaveLength(1), { timeout: 30_000 })
  signal('SIGTERM')
  const { code, stderr } = await ended
  expect([code, taken.length]).toEqual([0, 1])
  expect(taken[0]).toMatchObject({ from: 'ev@example.com', to: ['ops@example.com'] })
  expect(taken[0]?.source).toContain(`Subject: ${SUBJECT}\r\n`)
  expect(stderr).not.toContain('could not be')
})

test('ev serve logs alerts if no mail server is configured', { timeout: 60_000 }, async () => {
  const { signal, ended, printed } = startEv(ARGS, { home: await createHomeWithFailure() })
  await printed(SUBJECT, 'stderr')
  signal('SIGTERM')
  const { code, stderr } = await ended
  expect(code).toBe(0)
  const lines = stderr.split('\n').filter(line => line.includes(SUBJECT))
  expect(lines.map(line => JSON.parse(line))).toMatchObject([
    {
      level: 'warn',
      webhookId: 'wh_a',
      steps: expect.stringContaining('ev webhooks retry --since '),
    },
  ])
})

test('an unreachable mail server is logged without its password, and the service continues', {
  timeout: 60_000,
}, async () => {
  const home = await createHomeWithFailure()
  const { port } = await startMailServer({ isPlain: true, login: 'ann:s3cret' })
  const environment = {
    EV_NOTIFY_SMTP: `smtp://ann:s3cret@127.0.0.1:${port}`,
    EV_NOTIFY_FROM: 'ev@example.com',
    EV_NOTIFY_TO: 'ops@example.com',
    EV_LOG: 'debug',
  }
  const { signal, ended, printed } = startEv([...ARGS, '--debug'], { home, environment })
  await printed('webhook alert could not be sent; will retry', 'stderr')
  await printed('API documentation:', 'stderr')
  signal('SIGTERM')
  const { code, stderr } = await ended
  expect(code).toBe(0)
  expect(stderr).toContain(`The mail server 127.0.0.1:${port} did not accept the mail`)
  expect(stderr).not.toMatch(/s3cret|ann:/)
})

test('ev serve does not start with incomplete mail settings', {
  timeout: 60_000,
}, async () => {
  const args = [...ARGS, '--notify-smtp', 'smtp://mail.example']
  const { code, stdout, stderr } = await runEv(args, { home: emptyFolder() })
  expect([code, stdout]).toEqual([78, ''])
  expect(stderr).toMatch(/^error: Alerts by email need .*--notify-from is not\. .*\n$/)
})
