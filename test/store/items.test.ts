import { describe, expect, test } from 'vitest'
import { write } from '../../src/store/database.ts'
import {
  claimItems,
  nextDueAt,
  postponeItems,
  queuedItems,
  recordResults,
  resultPage,
  waitingOperators,
} from '../../src/store/items.ts'
import { startJob } from '../../src/store/jobs.ts'
import { addJob, type Bench, fileAll, queuedJob } from './temp-database.ts'

const claim = ({ database, clock, job }: Bench, max = 100, operator = 'op') =>
  claimItems(database, { jobId: job.id, operator, max, now: clock.now() })

async function routed(texts: readonly string[]): Promise<Bench> {
  const bench = await queuedJob(texts)
  await fileAll(bench.database, bench.job.id)
  return bench
}

const statesOf = async ({ database }: Bench) =>
  (await database.db.selectFrom('item').select('state').orderBy('position').execute()).map(
    ({ state }) => state,
  )

describe('queued items', () => {
  test('come in the order of the list, page by page, without duplicates', async () => {
    const { database, job } = await queuedJob(['a', 'b', 'a', 'c', 'd'])
    const page = (after: number) => queuedItems(database, { jobId: job.id, after, max: 2 })
    expect((await page(0)).map(({ position }) => position)).toEqual([1, 2])
    expect((await page(2)).map(({ position }) => position)).toEqual([4, 5])
    expect(await page(5)).toEqual([])
    expect((await page(0))[0]).toEqual({ position: 1, text: 'a', copies: 2 })
  })

  test('that are filed wait under their operator, due at once', async () => {
    const bench = await routed(['a@x.test', 'b@y.test', 'c@x.test'])
    const { database, job, clock } = bench
    expect(await waitingOperators(database, job.id)).toEqual(['op'])
    expect(await nextDueAt(database, { jobId: job.id, operator: 'op' })).toBe(clock.now())
    expect(await statesOf(bench)).toEqual(['routed', 'routed', 'routed'])
    expect(await queuedItems(database, { jobId: job.id, after: 0, max: 9 })).toEqual([])
  })
})

describe('a claim', () => {
  test('takes whole domains first, so that few transactions serve them', async () => {
    const bench = await routed(['1@b.test', '2@a.test', '3@b.test', '4@a.test', '5@c.test'])
    expect((await claim(bench, 3)).map(({ text }) => text)).toEqual([
      ...['1@b.test', '2@a.test', '4@a.test'],
    ])
    expect((await claim(bench, 3)).map(({ text }) => text)).toEqual(['3@b.test', '5@c.test'])
    expect(await claim(bench, 3)).toEqual([])
    expect(await statesOf(bench)).toEqual(Array(5).fill('probing'))
  })

  test('never takes an item twice, however many claim at once', async () => {
    const texts = Array.from({ length: 200 }, (_, n) => `u${n}@d${n % 9}.test`)
    const bench = await routed(texts)
    const claims = await Promise.all(Array.from({ length: 30 }, () => claim(bench, 9)))
    const positions = claims.flat().map(({ position }) => position)
    expect(positions).toHaveLength(200)
    expect(new Set(positions).size).toBe(200)
    expect(claims.every(({ length }) => length <= 9)).toBe(true)
  })

  test('takes nothing of another operator or another job', async () => {
    const bench = await routed(['a@x.test'])
    await addJob(bench.database, ['b@x.test'], 'job_b')
    await fileAll(bench.database, 'job_b')
    expect(await claim(bench, 9, 'other')).toEqual([])
    expect((await claim(bench)).map(({ text }) => text)).toEqual(['a@x.test'])
    expect(await waitingOperators(bench.database, 'job_b')).toEqual(['op'])
  })

  test('takes what is due and nothing else; what is put back is taken at its time', async () => {
    const bench = await routed(['a@x.test', 'b@x.test'])
    const { database, clock, job } = bench
    await claim(bench)
    const dueAt = clock.now() + 60_000
    await write(database, trx => postponeItems(trx, job.id, [{ position: 2, dueAt, tries: 1 }]))
    expect(await claim(bench)).toEqual([])
    expect(await nextDueAt(database, { jobId: job.id, operator: 'op' })).toBe(dueAt)
    await clock.advance(59_999)
    expect(await claim(bench)).toEqual([])
    await clock.advance(1)
    expect(await claim(bench)).toMatchObject([{ position: 2, tries: 1, ready_at: dueAt - 60_000 }])
    expect(await nextDueAt(database, { jobId: job.id, operator: 'op' })).toBeNull()
  })

  test('that was cut off is made again when the job is taken up', async () => {
    const bench = await routed(['a@x.test', 'b@x.test'])
    expect(await claim(bench)).toHaveLength(2)
    await startJob(bench.database, bench.job.id)
    expect(await claim(bench)).toHaveLength(2)
  })
})

describe('a result', () => {
  const record = ({ database, job }: Bench, position: number, result: string) =>
    write(database, trx => recordResults(trx, job.id, [{ position, result, class: 'risky' }]))

  const pages = ({ database, job }: Bench, max: number, after = 0) =>
    resultPage(database, { jobId: job.id, after, max })

  test('is taken once and only once', async () => {
    const bench = await routed(['a@x.test'])
    await record(bench, 1, '"first"')
    await record(bench, 1, '"second"')
    expect(await pages(bench, 9)).toEqual([{ position: 1, result: '"first"' }])
    expect(await statesOf(bench)).toEqual(['done'])
  })

  test('is not undone by a late postponement or by taking the job up', async () => {
    const bench = await routed(['a@x.test'])
    await claim(bench)
    await record(bench, 1, '"first"')
    const late = { position: 1, dueAt: 0, tries: 1 }
    await write(bench.database, trx => postponeItems(trx, bench.job.id, [late]))
    await startJob(bench.database, bench.job.id)
    expect(await statesOf(bench)).toEqual(['done'])
    expect(await claim(bench)).toEqual([])
  })

  test('is that of all its duplicates, in the order of the list and page by page', async () => {
    const bench = await queuedJob(['a', 'b', 'a', 'b', 'c'])
    await record(bench, 2, '"of b"')
    await record(bench, 1, '"of a"')
    expect(await pages(bench, 3)).toEqual([
      { position: 1, result: '"of a"' },
      { position: 2, result: '"of b"' },
      { position: 3, result: '"of a"' },
    ])
    expect(await pages(bench, 3, 3)).toEqual([
      { position: 4, result: '"of b"' },
      { position: 5, result: null },
    ])
  })
})
