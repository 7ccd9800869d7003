import { describe, expect, test } from 'vitest'
import { type Database, write } from '../../../src/db/database.ts'
import { storeRoutes } from '../../../src/jobs/item-store.ts'
import { cancelJob, failJob, startJob } from '../../../src/jobs/job-state.ts'
import { readJob } from '../../../src/jobs/job-store.ts'
import { creditsToResume, resumeJob } from '../../../src/jobs/prepare-resume.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { isRandomRecipient, toRecipients } from '../../support/engine.ts'
import { createTestWorker } from '../../support/worker.ts'

const OK = '250 2.1.5 Ok'
const UNKNOWN = '550 5.1.1 No such user'
const LATER = '450 4.2.0 Greylisted, try again in 300 seconds'

const addresses = (count: number, domain: string) =>
  Array.from({ length: count }, (_, n) => `u${n}@${domain}`)

const acceptsAll = toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : OK))

/** Resumes a job as the service does. */
async function resume(database: Database, id = 'job_1') {
  const seen = await readJob(database, id)
  const o = { now: database.clock.now(), creditsPerDay: null }
  const needed = await creditsToResume(database, seen, null)
  return write(database, trx => resumeJob(trx, seen, { ...o, needed }))
}

const recipients = (lines: readonly string[]) =>
  lines
    .flatMap(line => /^RCPT TO:<(.*)>$/.exec(line)?.[1] ?? [])
    .filter(to => !isRandomRecipient(to))

describe('a job that is resumed', () => {
  test('answers every row once: rows with a result keep it and are not probed again', async () => {
    const { worker, submit, finished, database, mx, reasons, pass } = await createTestWorker({
      script: acceptsAll,
      flags: { recipientsPerSession: '5', sessionsPerOperator: '1', sessionsPerSecond: '1' },
    })
    await submit('job_1', [...addresses(30, 'a.test'), 'no address', 'u0@a.test'])
    worker.take('job_1')
    await pass(3 * SECOND)
    await cancelJob(database, 'job_1')
    worker.drop('job_1')
    const { done } = await readJob(database, 'job_1')
    expect(done).toBeGreaterThan(5)
    expect(done).toBeLessThan(30)
    const before = (await reasons('job_1')).map(reason => reason !== null)
    const finishedRows = addresses(30, 'a.test').filter((_, n) => before[n])
    await pass(MINUTE)
    expect(await resume(database)).toMatchObject({ job: { state: 'processing', done } })
    const linesBefore = mx.lines().length
    worker.take('job_1')
    expect(await finished('job_1')).toMatchObject([
      { state: 'completed', done: 32, deliverable: 31, undeliverable: 1 },
    ])
    const probed = recipients(mx.lines().slice(linesBefore))
    expect(probed.filter(to => finishedRows.includes(to))).toEqual([])
    expect(new Set(probed)).toEqual(
      new Set(addresses(30, 'a.test').filter(to => !finishedRows.includes(to))),
    )
    expect(worker.status()).toMatchObject({ jobs: 0 })
  })

  test('answers every row once if resumed while its sessions are in flight', async () => {
    const { worker, submit, finished, database, reasons, pass, failures } = await createTestWorker({
      script: acceptsAll,
      flags: { recipientsPerSession: '3', sessionsPerOperator: '3', sessionsPerSecond: '1' },
    })
    await submit('job_1', [...addresses(40, 'a.test'), ...addresses(40, 'b.test')])
    worker.take('job_1')
    for (let round = 0; round < 6; round++) {
      await pass(SECOND + 50 * round)
      expect(await cancelJob(database, 'job_1')).toBe(true)
      worker.drop('job_1')
      await resume(database)
      worker.take('job_1')
    }
    // The poller of the service starts a job again that was dropped between them.
    await pass(SECOND)
    worker.take('job_1')
    expect(await finished('job_1')).toMatchObject([{ state: 'completed', deliverable: 80 }])
    expect(await reasons('job_1')).toEqual(Array(80).fill('accepted_email'))
    expect(failures).toEqual([])
  })

  test('probes greylisted rows when they are due', async () => {
    let isGrey = true
    const { worker, submit, finished, database, pass, reasons } = await createTestWorker({
      script: toRecipients(to => (isGrey ? LATER : isRandomRecipient(to) ? UNKNOWN : OK)),
    })
    await submit('job_1', ['ann@a.test'])
    worker.take('job_1')
    await pass(10 * SECOND)
    await cancelJob(database, 'job_1')
    worker.drop('job_1')
    isGrey = false
    await pass(10 * MINUTE)
    await resume(database)
    worker.take('job_1')
    await finished('job_1')
    expect(await reasons('job_1')).toEqual(['accepted_email'])
  })

  test('is no longer failed', async () => {
    const { worker, submit, finished, database, clock } = await createTestWorker({
      script: acceptsAll,
    })
    await submit('job_1', ['ann@a.test'])
    await startJob(database, 'job_1')
    await write(database, trx => failJob(trx, 'job_1', 'server_error', clock.now()))
    await resume(database)
    worker.take('job_1')
    expect(await finished('job_1')).toMatchObject([{ state: 'completed', error: null, done: 1 }])
  })

  test('is not reopened twice, nor while it is in progress', async () => {
    const { submit, database } = await createTestWorker()
    await submit('job_1', ['ann@a.test'])
    expect(await resume(database)).toBeNull()
    await cancelJob(database, 'job_1')
    const seen = await readJob(database, 'job_1')
    const o = { now: database.clock.now(), creditsPerDay: null, needed: null }
    const reopen = () => write(database, trx => resumeJob(trx, seen, o))
    expect(await reopen()).not.toBeNull()
    expect(await reopen()).toBeNull()
  })
})

test('a row that was routed meanwhile is not routed again', async () => {
  const { submit, database, clock } = await createTestWorker()
  await submit('job_1', ['ann@a.test'])
  const route = (operator: string) => {
    const routed = [{ position: 1, operator, domain: 'a.test', route: '{}' }]
    return write(database, trx => storeRoutes(trx, { jobId: 'job_1', routed, now: clock.now() }))
  }
  await route('first')
  await route('second')
  const rows = await database.db.selectFrom('item').select(['state', 'operator']).execute()
  expect(rows).toEqual([{ state: 'routed', operator: 'first' }])
})
