import { describe, expect, test } from 'vitest'
import { recallAnswers } from '../../src/store/answers.ts'
import { queuedItems } from '../../src/store/job/items.ts'
import { type Job, readJob } from '../../src/store/job/jobs.ts'
import { resultPage } from '../../src/store/job/results.ts'
import type { Result } from '../../src/verdict/verdict.ts'
import { type Change, Recorder } from '../../src/work/recorder.ts'
import { quiet } from '../engine/house.ts'
import { queuedJob } from '../store/temp-database.ts'

/** All that the recorder looks at. */
const RESULT = { verdict: { valid: true, risk: 'low' } } as unknown as Result
const UNKNOWN = { verdict: { valid: true, risk: 'unknown' } } as unknown as Result

const result = (position: number, copies = 1, of = RESULT): Change => ({
  results: [{ position, copies, result: of }],
})

async function office(rows: number) {
  const { database, clock, job } = await queuedJob(Array.from({ length: rows }, (_, n) => `t${n}`))
  const progress: Job[] = []
  const failures: unknown[] = []
  const recorder = new Recorder(database, job.id, {
    onProgress: state => progress.push(state),
    onFailure: error => failures.push(error),
  })
  const recorded = async () =>
    (await resultPage(database, { jobId: job.id, after: 0, max: rows })).filter(row => row.result)
  return { database, clock, job, recorder, progress, failures, recorded }
}

/** Whether a promise has settled by now. */
async function isOver(promise: Promise<unknown>): Promise<boolean> {
  let over = false
  promise.then(
    () => (over = true),
    () => (over = true),
  )
  await quiet()
  return over
}

describe('a recorder', () => {
  test('writes what came in fifty milliseconds together, and then says that it is durable', async () => {
    const { recorder, clock, progress, recorded } = await office(10)
    const adding = [recorder.add(result(1)), recorder.add(result(2)), recorder.add(result(3))]
    await clock.advance(49)
    expect(await isOver(Promise.race(adding))).toBe(false)
    expect(await recorded()).toEqual([])
    await clock.advance(1)
    await Promise.all(adding)
    expect(progress).toMatchObject([{ done: 3, deliverable: 3 }])
    expect(await recorded()).toHaveLength(3)
  })

  test('writes fifty changes at once, without waiting for the time', async () => {
    const { recorder, progress } = await office(60)
    const adding = Array.from({ length: 50 }, (_, n) => recorder.add(result(n + 1)))
    expect(await isOver(Promise.all(adding))).toBe(true)
    expect(progress).toMatchObject([{ done: 50 }])
  })

  test('writes one group at a time; what comes meanwhile is the next, however much it is', async () => {
    const { recorder, progress } = await office(200)
    for (let n = 1; n <= 170; n++) void recorder.add(result(n))
    await quiet()
    expect(progress.map(({ done }) => done)).toEqual([50, 170])
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
    expect((await recallAnswers(database, ['a@x.test'])).size).toBe(0)
    await clock.advance(50)
    await recorder.flushed()
    expect((await recallAnswers(database, ['a@x.test'])).get('a@x.test')).toEqual(answer)
  })

  test('is flushed when all that was taken is durable', async () => {
    const { recorder, clock, recorded } = await office(80)
    expect(await isOver(recorder.flushed())).toBe(true)
    for (let n = 1; n <= 60; n++) void recorder.add(result(n))
    const flushed = recorder.flushed()
    await clock.advance(50)
    await flushed
    expect(await recorded()).toHaveLength(60)
  })

  test('is settled while little is undurable, and waits when a crash would make us ask much again', async () => {
    const { recorder, clock } = await office(300)
    for (let n = 1; n <= 49; n++) void recorder.add(result(n))
    expect(await isOver(recorder.settled())).toBe(true)
    for (let n = 50; n <= 120; n++) void recorder.add(result(n))
    let settled = false
    const waiting = recorder.settled().then(() => {
      settled = true
    })
    expect(settled).toBe(false)
    await clock.advance(100)
    await waiting
    expect(await isOver(recorder.settled())).toBe(true)
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
