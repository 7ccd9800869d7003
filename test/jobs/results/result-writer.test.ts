import { describe, expect, test } from 'vitest'
import type { UsageLedger } from '../../../src/accounts/credits/usage-ledger.ts'
import type { Database } from '../../../src/db/database.ts'
import type { Result } from '../../../src/engine/verdict/verdict.ts'
import { getCachedAnswers } from '../../../src/jobs/cached-answers.ts'
import { deleteJob } from '../../../src/jobs/delete-job.ts'
import { queuedItems } from '../../../src/jobs/item-store.ts'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { type Job, readJob } from '../../../src/jobs/job-store.ts'
import { resultPage } from '../../../src/jobs/results/result-store.ts'
import { type Change, ResultWriter } from '../../../src/jobs/results/result-writer.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { addJob, queuedJob } from '../../support/database.ts'
import { countedRandom } from '../../support/random.ts'
import { drainEventLoop } from '../../support/wait.ts'

/** All that the recorder looks at. */
const ADDRESS = { evidence: { address: {} } }
const RESULT = { ...ADDRESS, verdict: { valid: true, risk: 'low' } } as unknown as Result
const UNKNOWN = { ...ADDRESS, verdict: { valid: true, risk: 'unknown' } } as unknown as Result

const result = (position: number, copies = 1, of = RESULT): Change => ({
  results: [{ position, copies, result: of }],
})

type OfficeOptions = {
  readonly ledger?: UsageLedger
  /** True: a commit that fails is tried again. */
  readonly retryStorageErrors?: boolean
  /** True: requests go first. */
  readonly hasRequests?: boolean
}

/** A job of so many rows, and who records what happens to it. */
async function office(
  rows: number,
  { ledger, retryStorageErrors = false, hasRequests = false }: OfficeOptions = {},
) {
  const { database, clock, job } = await queuedJob(Array.from({ length: rows }, (_, n) => `t${n}`))
  const progress: Job[] = []
  const failures: [jobId: string, error: unknown][] = []
  const lost: string[] = []
  const complaints: string[] = []
  const all = new ResultWriter({
    ...{
      database,
      retryStorageErrors,
      ledger: ledger ?? null,
      priority: { hasRequests: hasRequests },
    },
    ...{ random: countedRandom(), baseUrl: 'https://ev.test' },
    log: { ...silentLog, error: message => void complaints.push(message) },
    onProgress: state => progress.push(state),
    onLost: jobId => lost.push(jobId),
    onFailure: (jobId, error) => failures.push([jobId, error]),
  })
  const recorded = async (jobId = job.id) =>
    (await resultPage(database, { jobId, after: 0, max: rows })).filter(row => row.result)
  const recorder = {
    add: (change: Change, jobId = job.id) => all.add(jobId, change),
    remember: all.cacheResult.bind(all),
    flushed: () => all.flushed(),
    settled: () => all.settled(),
    stop: () => all.stop(),
  }
  return { database, clock, job, recorder, progress, failures, lost, complaints, recorded }
}

/** Whether a promise has settled by now. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let over = false
  promise.then(
    () => (over = true),
    () => (over = true),
  )
  await drainEventLoop()
  return over
}

describe('a recorder', () => {
  test('writes what came in fifty milliseconds together, and then says that it is durable', async () => {
    const { recorder, clock, progress, recorded } = await office(10)
    const adding = [recorder.add(result(1)), recorder.add(result(2)), recorder.add(result(3))]
    await clock.advance(49)
    expect(await isDone(Promise.race(adding))).toBe(false)
    expect(await recorded()).toEqual([])
    await clock.advance(1)
    await Promise.all(adding)
    expect(progress).toMatchObject([{ done: 3, deliverable: 3 }])
    expect(await recorded()).toHaveLength(3)
  })

  test('writes fifty changes at once, without waiting for the time', async () => {
    const { recorder, progress } = await office(60)
    const adding = Array.from({ length: 50 }, (_, n) => recorder.add(result(n + 1)))
    expect(await isDone(Promise.all(adding))).toBe(true)
    expect(progress).toMatchObject([{ done: 50 }])
  })

  test('writes one group at a time; what comes meanwhile is the next, however much it is', async () => {
    const { recorder, progress } = await office(200)
    for (let n = 1; n <= 170; n++) void recorder.add(result(n))
    await drainEventLoop()
    expect(progress.map(({ done }) => done)).toEqual([50, 170])
  })

  test('writes at most 25 changes between two turns of the event loop while there are requests', async () => {
    const { recorder, progress } = await office(200, { hasRequests: true })
    for (let n = 1; n <= 100; n++) void recorder.add(result(n))
    await recorder.flushed()
    expect(progress.map(({ done }) => done)).toEqual([25, 50, 75, 100])
  })

  test('counts a shared result for each row that shares it, and each item once', async () => {
    const { recorder, clock, progress } = await office(9)
    void recorder.add(result(1, 4))
    void recorder.add(result(2, 1, UNKNOWN))
    await clock.advance(50)
    void recorder.add(result(1, 4))
    await clock.advance(50)
    await recorder.flushed()
    expect(progress.at(-1)).toMatchObject({ done: 5, deliverable: 4, unknown: 1 })
  })

  test('takes one result of an item, were two of one group', async () => {
    const { recorder, clock, job, database, failures } = await office(9)
    void recorder.add(result(1))
    void recorder.add(result(1))
    await clock.advance(50)
    await recorder.flushed()
    expect(failures).toEqual([])
    expect(await readJob(database, job.id)).toMatchObject({ done: 1, deliverable: 1 })
  })

  test('says that a job is finished with its last row', async () => {
    const { recorder, clock, progress } = await office(2)
    void recorder.add(result(1))
    await clock.advance(50)
    void recorder.add(result(2))
    await clock.advance(50)
    await recorder.flushed()
    expect(progress.map(({ state }) => state)).toEqual(['queued', 'completed'])
  })

  test('files and puts back items with the results they came with', async () => {
    const { recorder, clock, database, job } = await office(3)
    const filed = { position: 2, operator: 'op', domain: 'x.test', route: '{}' }
    void recorder.add({ ...result(1), filed: [filed] })
    await clock.advance(50)
    const set = database.db.updateTable('item').set({ state: 'probing' })
    await set.where('position', '=', 2).execute()
    void recorder.add({
      holder: null,
      postponed: [{ position: 2, dueAt: 77, tries: 2, egress: null, refusedBy: [] }],
    })
    await clock.advance(50)
    await recorder.flushed()
    const rows = await database.db.selectFrom('item').selectAll().orderBy('position').execute()
    expect(rows).toMatchObject([
      { state: 'done' },
      { state: 'routed', operator: 'op', domain: 'x.test', due_at: 77, tries: 2 },
      { state: 'queued' },
    ])
    expect(await queuedItems(database, { jobId: job.id, after: 0, max: 9 })).toHaveLength(1)
  })

  test('keeps answers with the group that they belong to', async () => {
    const { recorder, clock, database } = await office(2)
    const answer = { probed: { answer: { kind: 'accepted' } }, at: clock.now() }
    void recorder.add(result(1))
    void recorder.remember(new Map([['a@x.test', answer as never]]))
    expect((await getCachedAnswers(database, ['a@x.test'])).size).toBe(0)
    await clock.advance(50)
    await recorder.flushed()
    expect((await getCachedAnswers(database, ['a@x.test'])).get('a@x.test')).toEqual(answer)
  })

  test('is flushed when all that was taken is durable', async () => {
    const { recorder, clock, recorded } = await office(80)
    expect(await isDone(recorder.flushed())).toBe(true)
    for (let n = 1; n <= 60; n++) void recorder.add(result(n))
    const flushed = recorder.flushed()
    await clock.advance(50)
    await flushed
    expect(await recorded()).toHaveLength(60)
  })

  test('is settled while little is undurable, and waits when a crash would make us ask much again', async () => {
    const { recorder, clock } = await office(300)
    for (let n = 1; n <= 49; n++) void recorder.add(result(n))
    expect(await isDone(recorder.settled())).toBe(true)
    for (let n = 50; n <= 120; n++) void recorder.add(result(n))
    let settled = false
    const waiting = recorder.settled().then(() => {
      settled = true
    })
    expect(settled).toBe(false)
    await clock.advance(100)
    await waiting
    expect(await isDone(recorder.settled())).toBe(true)
  })

  test('that fails to write tells the watcher and whoever waits, writes no half, and goes on', async () => {
    const { recorder, clock, database, job, progress, failures, recorded } = await office(2)
    const first = recorder.add(result(1))
    // More rows than the list has: the database refuses the group.
    const second = recorder.add(result(2, 99))
    await clock.advance(50)
    await expect(first).rejects.toThrow(/constraint/i)
    await expect(second).rejects.toThrow(/constraint/i)
    expect(failures).toHaveLength(1)
    expect(progress).toEqual([])
    expect(await recorded()).toEqual([])
    expect(await readJob(database, job.id)).toMatchObject({ done: 0 })
    void recorder.add(result(1))
    await clock.advance(50)
    await recorder.flushed()
    expect(progress).toMatchObject([{ done: 1 }])
  })
})

describe('a recorder of several jobs', () => {
  test('writes them in one commit, and each its own', async () => {
    const { recorder, clock, database, progress, recorded } = await office(3)
    await addJob(database, ['t0', 't1'], 'job_b')
    void recorder.add(result(1))
    void recorder.add(result(2, 1, UNKNOWN), 'job_b')
    void recorder.add(result(3))
    await clock.advance(50)
    await recorder.flushed()
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
  ])('loses what one brings that was %s, and nothing else', async (_, end) => {
    const { recorder, clock, database, progress, lost, failures, recorded } = await office(3)
    await addJob(database, ['t0', 't1'], 'job_b')
    const adding = [recorder.add(result(1)), recorder.add(result(1), 'job_b')]
    await end(database)
    await clock.advance(50)
    await Promise.all(adding)
    expect(progress).toMatchObject([{ id: 'job_a', done: 1 }])
    expect([lost, failures]).toEqual([['job_b'], []])
    expect(await recorded('job_b')).toEqual([])
  })

  test('ends the one whose changes are refused, and writes those of the others', async () => {
    const { recorder, clock, database, progress, failures, complaints } = await office(3, {
      retryStorageErrors: true,
    })
    await addJob(database, ['t0', 't1'], 'job_b')
    const answer = { probed: { answer: { kind: 'accepted' } }, at: clock.now() }
    void recorder.add(result(1))
    void recorder.remember(new Map([['a@x.test', answer as never]]))
    // More rows than the list has.
    void recorder.add(result(1, 99), 'job_b')
    await clock.advance(50)
    await recorder.flushed()
    expect(progress).toMatchObject([
      { id: 'job_a', done: 1 },
      { id: 'job_b', state: 'failed', error: 'server_error', done: 0 },
    ])
    expect(failures).toMatchObject([['job_b', { message: expect.stringMatching(/constraint/i) }]])
    expect(complaints).toEqual(['job failed with an internal error'])
    expect((await getCachedAnswers(database, ['a@x.test'])).size).toBe(1)
  })

  test('never commits more than two hundred changes together', async () => {
    const { recorder, progress } = await office(700)
    for (let n = 1; n <= 650; n++) void recorder.add(result(n))
    await recorder.flushed()
    expect(progress.map(({ done }) => done)).toEqual([50, 250, 450, 650])
  })
})

describe('a recorder that cannot write', () => {
  /** As a full disk does, while `isFull`. */
  function fullDisk(database: Database) {
    const disk = { isFull: true }
    const execute = database.db.transaction.bind(database.db)
    database.db.transaction = () => {
      if (disk.isFull) throw Object.assign(new Error('disk is full'), { code: 'SQLITE_FULL' })
      return execute()
    }
    return disk
  }

  test('tries it again each second until it can, loses nothing, and lets nobody go on meanwhile', async () => {
    const { recorder, clock, database, progress, failures, complaints } = await office(200, {
      retryStorageErrors: true,
    })
    const disk = fullDisk(database)
    const adding = recorder.add(result(1))
    await clock.advance(50)
    for (let n = 2; n <= 150; n++) void recorder.add(result(n))
    const settled = recorder.settled()
    await clock.advance(5_000)
    expect([await isDone(adding), await isDone(settled)]).toEqual([false, false])
    expect(complaints).toHaveLength(6)
    disk.isFull = false
    await clock.advance(1_000)
    await Promise.all([adding, settled])
    expect(progress.map(({ done }) => done)).toEqual([1, 150])
    expect([failures, await isDone(recorder.settled())]).toEqual([[], true])
  })

  test('gives up when it is stopped, and says for whom', async () => {
    const { recorder, clock, database, failures } = await office(2, { retryStorageErrors: true })
    fullDisk(database)
    const adding = recorder.add(result(1))
    await clock.advance(2_000)
    await recorder.stop()
    await expect(adding).rejects.toThrow('disk is full')
    expect(failures).toMatchObject([['job_a', { message: 'disk is full' }]])
  })

  test('counts each result once, were the commit that failed durable after all', async () => {
    const { recorder, clock, database, progress } = await office(2, { retryStorageErrors: true })
    const transaction = database.db.transaction.bind(database.db)
    const failing = {
      async execute(work: never) {
        database.db.transaction = transaction
        await transaction().execute(work)
        throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
      },
    }
    database.db.transaction = () => failing as never
    void recorder.add(result(1))
    await clock.advance(1_050)
    await recorder.flushed()
    expect(progress).toMatchObject([{ done: 1, deliverable: 1 }])
  })
})
