import { describe, expect, test } from 'vitest'
import type { Database } from '../../../src/db/database.ts'
import { getCachedAnswers } from '../../../src/jobs/cached-answers.ts'
import { deleteJob } from '../../../src/jobs/delete-job.ts'
import { queuedItems } from '../../../src/jobs/item-store.ts'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { type Job, readJob } from '../../../src/jobs/job-store.ts'
import type { ItemUpdate } from '../../../src/jobs/results/commit-batch.ts'
import { resultPage } from '../../../src/jobs/results/result-store.ts'
import { ResultWriter } from '../../../src/jobs/results/result-writer.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { addJob, queuedJob } from '../../support/database.ts'
import { countedRandom } from '../../support/random.ts'
import { resultOf } from '../../support/result.ts'
import { drainEventLoop } from '../../support/wait.ts'

const RESULT = resultOf('accepted_email')
const UNKNOWN = resultOf('timeout')

const result = (position: number, copies = 1, of = RESULT): ItemUpdate => ({
  results: [{ position, copies, result: of }],
})

type WriterOptions = {
  /** True to retry a failed commit. */
  readonly retryStorageErrors?: boolean
  /** Whether requests are being served; left out if the process serves none. */
  readonly hasRequests?: boolean
}

/** Creates a job of `rows` rows and its result writer. */
async function createWriter(
  rows: number,
  { retryStorageErrors = false, hasRequests }: WriterOptions = {},
) {
  const { database, clock, job } = await queuedJob(Array.from({ length: rows }, (_, n) => `t${n}`))
  const progress: Job[] = []
  const failures: [jobId: string, error: unknown][] = []
  const lost: string[] = []
  const loggedErrors: string[] = []
  /** Whether it was full when each batch had been written. */
  const written: boolean[] = []
  const all = new ResultWriter({
    database,
    retryStorageErrors,
    ledger: null,
    priority: hasRequests === undefined ? null : { hasRequests },
    random: countedRandom(),
    baseUrl: 'https://ev.test',
    log: { ...silentLog, error: message => void loggedErrors.push(message) },
    onProgress: state => progress.push(state),
    onWritten: () => written.push(all.isFull),
    onLost: jobId => lost.push(jobId),
    onFailure: (jobId, error) => failures.push([jobId, error]),
  })
  const recorded = async (jobId = job.id) =>
    (await resultPage(database, { jobId, after: 0, max: rows })).filter(row => row.result)
  const writer = {
    add: (change: ItemUpdate, jobId = job.id) => all.add(jobId, change),
    remember: all.cacheResult.bind(all),
    flushed: () => all.flushed(),
    settled: () => all.settled(),
    stop: () => all.stop(),
  }
  const seen = { progress, written, failures, lost, loggedErrors }
  return { database, clock, job, writer, recorded, ...seen }
}

/** Returns true if a promise has settled. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false
  promise.then(
    () => (isSettled = true),
    () => (isSettled = true),
  )
  await drainEventLoop()
  return isSettled
}

describe('a result writer', () => {
  test('commits the changes of fifty milliseconds together and then resolves', async () => {
    const { writer, clock, progress, recorded } = await createWriter(10)
    const adding = [writer.add(result(1)), writer.add(result(2)), writer.add(result(3))]
    await clock.advance(49)
    expect(await isDone(Promise.race(adding))).toBe(false)
    expect(await recorded()).toEqual([])
    await clock.advance(1)
    await Promise.all(adding)
    expect(progress).toMatchObject([{ done: 3, deliverable: 3 }])
    expect(await recorded()).toHaveLength(3)
  })

  test('commits 500 changes at once without waiting', async () => {
    const { writer, progress } = await createWriter(600)
    const adding = Array.from({ length: 500 }, (_, n) => writer.add(result(n + 1)))
    expect(await isDone(Promise.all(adding))).toBe(true)
    expect(progress).toMatchObject([{ done: 500 }])
  })

  test('has room again when it reports that its last batch is written', async () => {
    const { writer, written } = await createWriter(120, { hasRequests: false })
    const adding = Array.from({ length: 120 }, (_, n) => writer.add(result(n + 1)))
    await Promise.all(adding)
    await drainEventLoop()
    expect(written.at(-1)).toBe(false)
  })

  test('writes one batch at a time; changes that arrive meanwhile wait for the next batch', async () => {
    const { writer, progress } = await createWriter(2_100)
    for (let n = 1; n <= 2_000; n++) void writer.add(result(n))
    await writer.flushed()
    expect(progress.map(({ done }) => done)).toEqual([500, 1_500, 2_000])
  })

  test('writes at most 25 changes per turn of the event loop while requests are served', async () => {
    const { writer, progress } = await createWriter(200, { hasRequests: true })
    for (let n = 1; n <= 100; n++) void writer.add(result(n))
    await writer.flushed()
    expect(progress.map(({ done }) => done)).toEqual([25, 50, 75, 100])
  })

  test('writes smaller batches in a process that serves requests', async () => {
    const { writer, progress } = await createWriter(700, { hasRequests: false })
    for (let n = 1; n <= 650; n++) void writer.add(result(n))
    await writer.flushed()
    expect(progress.map(({ done }) => done)).toEqual([50, 250, 450, 650])
  })

  test('counts a shared result for each row that shares it, and each item once only', async () => {
    const { writer, clock, progress } = await createWriter(9)
    void writer.add(result(1, 4))
    void writer.add(result(2, 1, UNKNOWN))
    await clock.advance(50)
    void writer.add(result(1, 4))
    await clock.advance(50)
    await writer.flushed()
    expect(progress.at(-1)).toMatchObject({ done: 5, deliverable: 4, unknown: 1 })
  })

  test('accepts one result per item, even if one batch has two', async () => {
    const { writer, clock, job, database, failures } = await createWriter(9)
    void writer.add(result(1))
    void writer.add(result(1))
    await clock.advance(50)
    await writer.flushed()
    expect(failures).toEqual([])
    expect(await readJob(database, job.id)).toMatchObject({ done: 1, deliverable: 1 })
  })

  test('reports that a job is finished with its last row', async () => {
    const { writer, clock, progress } = await createWriter(2)
    void writer.add(result(1))
    await clock.advance(50)
    void writer.add(result(2))
    await clock.advance(50)
    await writer.flushed()
    expect(progress.map(({ state }) => state)).toEqual(['queued', 'completed'])
  })

  test('routes and postpones items in the batch of their results', async () => {
    const { writer, clock, database, job } = await createWriter(3)
    const routed = { position: 2, operator: 'op', domain: 'x.test', route: '{}' }
    void writer.add({ ...result(1), routed: [routed] })
    await clock.advance(50)
    const set = database.db.updateTable('item').set({ state: 'probing' })
    await set.where('position', '=', 2).execute()
    void writer.add({
      holder: null,
      postponed: [{ position: 2, dueAt: 77, tries: 2, egress: null, refusedBy: [] }],
    })
    await clock.advance(50)
    await writer.flushed()
    const rows = await database.db.selectFrom('item').selectAll().orderBy('position').execute()
    expect(rows).toMatchObject([
      { state: 'done' },
      { state: 'routed', operator: 'op', domain: 'x.test', due_at: 77, tries: 2 },
      { state: 'queued' },
    ])
    expect(await queuedItems(database, { jobId: job.id, after: 0, max: 9 })).toHaveLength(1)
  })

  test('caches answers in the batch that they belong to', async () => {
    const { writer, clock, database } = await createWriter(2)
    const answer = { probed: { answer: { kind: 'accepted' } }, at: clock.now() }
    void writer.add(result(1))
    void writer.remember(new Map([['a@x.test', answer as never]]))
    expect((await getCachedAnswers(database, ['a@x.test'])).size).toBe(0)
    await clock.advance(50)
    await writer.flushed()
    expect((await getCachedAnswers(database, ['a@x.test'])).get('a@x.test')).toEqual(answer)
  })

  test('is flushed when all added changes are committed', async () => {
    const { writer, clock, recorded } = await createWriter(80)
    expect(await isDone(writer.flushed())).toBe(true)
    for (let n = 1; n <= 60; n++) void writer.add(result(n))
    const flushed = writer.flushed()
    await clock.advance(50)
    await flushed
    expect(await recorded()).toHaveLength(60)
  })

  test('is settled while few changes are pending, and waits if a crash would undo many', async () => {
    const { writer, clock } = await createWriter(1_200)
    for (let n = 1; n <= 499; n++) void writer.add(result(n))
    expect(await isDone(writer.settled())).toBe(true)
    for (let n = 500; n <= 1_100; n++) void writer.add(result(n))
    let settled = false
    const waiting = writer.settled().then(() => {
      settled = true
    })
    expect(settled).toBe(false)
    await clock.advance(100)
    await waiting
    expect(await isDone(writer.settled())).toBe(true)
  })

  test('reports a failed write to its callers, writes nothing partially, and continues', async () => {
    const { writer, clock, database, job, progress, failures, recorded } = await createWriter(2)
    const first = writer.add(result(1))
    // More rows than the list has, so the database rejects the batch.
    const second = writer.add(result(2, 99))
    await clock.advance(50)
    await expect(first).rejects.toThrow(/constraint/i)
    await expect(second).rejects.toThrow(/constraint/i)
    expect(failures).toHaveLength(1)
    expect(progress).toEqual([])
    expect(await recorded()).toEqual([])
    expect(await readJob(database, job.id)).toMatchObject({ done: 0 })
    void writer.add(result(1))
    await clock.advance(50)
    await writer.flushed()
    expect(progress).toMatchObject([{ done: 1 }])
  })
})

describe('a result writer with several jobs', () => {
  test('writes them in one commit, each with its own changes', async () => {
    const { writer, clock, database, progress, recorded } = await createWriter(3)
    await addJob(database, ['t0', 't1'], 'job_b')
    void writer.add(result(1))
    void writer.add(result(2, 1, UNKNOWN), 'job_b')
    void writer.add(result(3))
    await clock.advance(50)
    await writer.flushed()
    expect(progress).toMatchObject([
      { id: 'job_a', done: 2, deliverable: 2 },
      { id: 'job_b', done: 1, unknown: 1 },
    ])
    expect((await recorded()).map(({ position }) => position)).toEqual([1, 3])
    expect((await recorded('job_b')).map(({ position }) => position)).toEqual([2])
  })

  test.each<[string, (database: Database) => Promise<unknown>]>([
    ['cancelled', database => cancelJob(database, 'job_b')],
    ['deleted', database => deleteJob(database, 'job_b')],
  ])('discards only the changes of a job that was %s', async (_, end) => {
    const { writer, clock, database, progress, lost, failures, recorded } = await createWriter(3)
    await addJob(database, ['t0', 't1'], 'job_b')
    const adding = [writer.add(result(1)), writer.add(result(1), 'job_b')]
    await end(database)
    await clock.advance(50)
    await Promise.all(adding)
    expect(progress).toMatchObject([{ id: 'job_a', done: 1 }])
    expect([lost, failures]).toEqual([['job_b'], []])
    expect(await recorded('job_b')).toEqual([])
  })

  test('fails a job with rejected changes and writes those of the others', async () => {
    const { writer, clock, database, progress, failures, loggedErrors } = await createWriter(3, {
      retryStorageErrors: true,
    })
    await addJob(database, ['t0', 't1'], 'job_b')
    const answer = { probed: { answer: { kind: 'accepted' } }, at: clock.now() }
    void writer.add(result(1))
    void writer.remember(new Map([['a@x.test', answer as never]]))
    // More rows than the list has.
    void writer.add(result(1, 99), 'job_b')
    await clock.advance(50)
    await writer.flushed()
    expect(progress).toMatchObject([
      { id: 'job_a', done: 1 },
      { id: 'job_b', state: 'failed', error: 'server_error', done: 0 },
    ])
    expect(failures).toMatchObject([['job_b', { message: expect.stringMatching(/constraint/i) }]])
    expect(loggedErrors).toEqual(['job failed with an internal error'])
    expect((await getCachedAnswers(database, ['a@x.test'])).size).toBe(1)
  })

  test('never commits more than a thousand changes together', async () => {
    const { writer, progress } = await createWriter(3_100)
    for (let n = 1; n <= 3_000; n++) void writer.add(result(n))
    await writer.flushed()
    expect(progress.map(({ done }) => done)).toEqual([500, 1_500, 2_500, 3_000])
  })
})

describe('a result writer that cannot write', () => {
  /** Fails like a full disk while `isFull`. */
  function fullDisk(database: Database) {
    const disk = { isFull: true }
    const execute = database.db.transaction.bind(database.db)
    database.db.transaction = () => {
      if (disk.isFull) throw Object.assign(new Error('disk is full'), { code: 'SQLITE_FULL' })
      return execute()
    }
    return disk
  }

  test('retries each second without loss and blocks progress meanwhile', async () => {
    const { writer, clock, database, progress, failures, loggedErrors } = await createWriter(200, {
      retryStorageErrors: true,
    })
    const disk = fullDisk(database)
    const adding = writer.add(result(1))
    await clock.advance(50)
    for (let n = 2; n <= 150; n++) void writer.add(result(n))
    const settled = writer.settled()
    await clock.advance(5_000)
    expect([await isDone(adding), await isDone(settled)]).toEqual([false, false])
    expect(loggedErrors).toHaveLength(6)
    disk.isFull = false
    await clock.advance(1_000)
    await Promise.all([adding, settled])
    expect(progress.map(({ done }) => done)).toEqual([1, 150])
    expect([failures, await isDone(writer.settled())]).toEqual([[], true])
  })

  test('stops retrying when it is stopped and reports the jobs', async () => {
    const { writer, clock, database, failures } = await createWriter(2, {
      retryStorageErrors: true,
    })
    fullDisk(database)
    const adding = writer.add(result(1))
    await clock.advance(2_000)
    await writer.stop()
    await expect(adding).rejects.toThrow('disk is full')
    expect(failures).toMatchObject([['job_a', { message: 'disk is full' }]])
  })

  test('counts each result once even if a failed commit was durable', async () => {
    const { writer, clock, database, progress } = await createWriter(2, {
      retryStorageErrors: true,
    })
    const transaction = database.db.transaction.bind(database.db)
    const failing = {
      async execute(work: never) {
        database.db.transaction = transaction
        await transaction().execute(work)
        throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
      },
    }
    database.db.transaction = () => failing as never
    void writer.add(result(1))
    await clock.advance(1_050)
    await writer.flushed()
    expect(progress).toMatchObject([{ done: 1, deliverable: 1 }])
  })
})
