import { expect, onTestFinished, test } from 'vitest'
import { updateAccount } from '../../src/accounts/account-store.ts'
import { write } from '../../src/db/database.ts'
import { deleteJob } from '../../src/jobs/delete-job.ts'
import { emitJobEvent } from '../../src/jobs/job-events.ts'
import {
  DEFAULT_JOB_MAIL_TIMINGS,
  type JobMailTimings,
  startJobMails,
} from '../../src/jobs/job-mails.ts'
import { failJob } from '../../src/jobs/job-state.ts'
import { readJob } from '../../src/jobs/job-store.ts'
import { DAY, HOUR } from '../../src/platform/clock.ts'
import { type Log, type LogFields, silentLog } from '../../src/platform/log.ts'
import { addAccount } from '../support/account-rows.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'
import { type Seed, seedJob } from '../support/job-rows.ts'
import { fakeNotify } from '../support/notify.ts'
import { countedRandom } from '../support/random.ts'
import { waitUntil } from '../support/wait.ts'

const { pollMs: POLL_MS, retryMs: RETRY_MS } = DEFAULT_JOB_MAIL_TIMINGS
const TEXTS = ['valid@a.example', 'valid2@a.example', 'invalid@a.example', 'risky@a.example']
const NOTIFY = { notify: true }

async function services({ email = 'owner@shop.example' }: { email?: string | null } = {}) {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await addAccount(database, 'acc_1')
  await write(database, trx => updateAccount(trx, 'acc_1', { email }))
  const lines: [string, LogFields][] = []
  const keep = (message: string, fields: LogFields = {}) => void lines.push([message, fields])
  const log: Log = { ...silentLog, warn: keep, error: keep }
  const notify = fakeNotify()
  const start = (timings: Partial<JobMailTimings> = {}) => {
    const mails = startJobMails({
      database,
      notify,
      clock,
      log,
      baseUrl: 'https://ev.example',
      timings: { ...DEFAULT_JOB_MAIL_TIMINGS, ...timings },
    })
    onTestFinished(() => mails.stop())
    return mails
  }
  const untilPolled = () => waitUntil(() => clock.pending > 0)
  const emit = async () => {
    const o = {
      now: clock.now(),
      dueAt: clock.now(),
      random: countedRandom(),
      baseUrl: 'https://ev.example',
    }
    const job = await readJob(database, 'job_a')
    await write(database, trx => emitJobEvent(trx, job, o))
  }
  return {
    clock,
    database,
    notify,
    lines,
    start,
    emit,
    untilPolled,
    end: async (seed: Partial<Seed> = {}) => {
      await seedJob(database, { texts: TEXTS, name: 'customers.csv', source: NOTIFY, ...seed })
      await emit()
    },
    pass: async (ms: number) => {
      for (let left = ms; left > 0; left -= POLL_MS) {
        await clock.advance(Math.min(left, POLL_MS))
        await untilPolled()
      }
    },
  }
}

test('a completed list is reported once, with its counts and the URL of its page', async () => {
  const { end, start, untilPolled, pass, notify, lines } = await services()
  await end()
  start()
  await untilPolled()
  expect(notify.sent).toMatchObject([
    {
      to: 'owner@shop.example',
      subject: 'ev: list "customers.csv" is completed (4 rows)',
      messageId: expect.stringMatching(/^<job_a\.\d+@ev\.example>$/),
    },
  ])
  const text = notify.sent[0]?.text ?? ''
  expect(text).toContain('The list "customers.csv" is completed: 4 rows.')
  expect(text).toMatch(/deliverable +2\n +risky +1\n +undeliverable +1\n +unknown +0\n/)
  expect(text).toContain('Results: https://ev.example/lists/job_a')
  await pass(2 * RETRY_MS)
  expect(notify.sent).toHaveLength(1)
  expect(lines).toEqual([])
})

test('a list without notify, and one that is not finished, are not reported', async () => {
  const { end, start, untilPolled, notify, database } = await services()
  await end({ source: {} })
  await seedJob(database, { id: 'job_b', texts: TEXTS, source: NOTIFY, done: 1 })
  start()
  await untilPolled()
  expect(notify.tried).toEqual([])
})

test('a failed list is reported, and again when it is completed', async () => {
  const { start, untilPolled, pass, notify, database, clock, emit } = await services()
  await seedJob(database, { texts: TEXTS, source: NOTIFY, done: 1 })
  await write(database, trx => failJob(trx, 'job_a', 'server_error', clock.now()))
  await emit()
  start()
  await untilPolled()
  const resumed = { state: 'completed', finished_at: clock.now() + 1, error: null } as const
  await write(database, trx => trx.updateTable('job').set(resumed).execute())
  await emit()
  await pass(POLL_MS)
  expect(notify.sent.map(({ subject }) => subject)).toEqual([
    'ev: list job_a has failed (4 rows)',
    'ev: list job_a is completed (4 rows)',
  ])
  expect(notify.sent[0]?.text).toContain('after 1 of 4 rows. You can resume it.')
})

test('a mail that fails is retried with the same Message-ID, for a week', async () => {
  const { end, start, untilPolled, pass, notify, lines } = await services()
  await end()
  notify.handleWith(() => Promise.reject(new Error('421 later')))
  start()
  await untilPolled()
  await pass(RETRY_MS)
  expect(notify.tried).toHaveLength(2)
  expect(new Set(notify.tried.map(({ messageId }) => messageId)).size).toBe(1)
  expect(lines[0]).toEqual([
    'job mail could not be sent; will retry',
    expect.objectContaining({ jobId: 'job_a', why: '421 later' }),
  ])
  notify.handleWith(async () => {})
  await pass(RETRY_MS)
  expect(notify.sent).toHaveLength(1)
  await pass(HOUR)
  expect(notify.tried).toHaveLength(3)
})

test('a mail is given up after it has failed for a week', async () => {
  const { end, start, untilPolled, notify, clock, lines, database } = await services()
  await end()
  notify.handleWith(() => Promise.reject(new Error('no')))
  start({ pollMs: 4 * DAY })
  await untilPolled()
  await clock.advance(4 * DAY)
  await waitUntil(() => lines.length === 2)
  await untilPolled()
  await clock.advance(4 * DAY)
  await waitUntil(() => lines.length === 3)
  await untilPolled()
  expect(lines.map(([message]) => message)).toEqual([
    'job mail could not be sent; will retry',
    'job mail could not be sent; will retry',
    'job mail could not be sent; giving up',
  ])
  expect((await readJob(database, 'job_a')).mail_due_at).toBeNull()
})

test('of two servers, one sends the mail', async () => {
  const { clock, end, start, pass, notify } = await services()
  await end()
  start()
  start()
  // Both wait for their next poll.
  await waitUntil(() => notify.sent.length > 0 && clock.pending >= 2)
  await pass(2 * POLL_MS)
  expect(notify.sent).toHaveLength(1)
})

test('the mail of a server that crashed while sending is sent again', async () => {
  const { end, start, untilPolled, pass, notify } = await services()
  await end()
  const { promise: hanging, resolve } = Promise.withResolvers<void>()
  notify.handleWith(() => hanging)
  start()
  await waitUntil(() => notify.tried.length === 1)
  notify.handleWith(async () => {})
  start()
  await untilPolled()
  expect(notify.sent).toEqual([])
  await pass(RETRY_MS)
  expect(notify.sent).toHaveLength(1)
  expect(notify.sent[0]?.messageId).toBe(notify.tried[0]?.messageId)
  resolve()
})

test('without an address of the account, the log has a line', async () => {
  const { end, start, untilPolled, notify, lines } = await services({ email: null })
  await end()
  start()
  await untilPolled()
  expect(notify.tried).toEqual([])
  expect(lines).toMatchObject([
    ['ev: list "customers.csv" is completed (4 rows)', { jobId: 'job_a', state: 'completed' }],
  ])
})

test('a deleted list is not reported', async () => {
  const { end, start, untilPolled, notify, database } = await services()
  await end()
  await deleteJob(database, 'job_a')
  start()
  await untilPolled()
  expect(notify.tried).toEqual([])
})

test('text of the user does not break the mail', async () => {
  const { end, start, untilPolled, notify } = await services()
  await end({ name: 'a\r\nBcc: x@x.example\u202e' })
  start()
  await untilPolled()
  expect(notify.sent[0]?.subject).not.toMatch(/[\r\n\u202e]/)
})
