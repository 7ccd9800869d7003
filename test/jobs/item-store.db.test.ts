import { describe, expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import {
  claimItems,
  jobsWaitingFor,
  listWaitingPairs,
  nextDueAt,
  pinnedItems,
  unpinItems,
} from '../../src/jobs/item-claims.ts'
import {
  type Postponed,
  postponeItems,
  queuedItems,
  recordResults,
} from '../../src/jobs/item-store.ts'
import { startJob } from '../../src/jobs/job-state.ts'
import { resultPage } from '../../src/jobs/results/result-store.ts'
import { addJob, type Bench, fileAll, queuedJob } from '../support/database.ts'
import { ofJob } from '../support/job-rows.ts'

const claim = ({ database, clock, job }: Bench, max = 100, operator = 'op', egress = 'a') =>
  claimItems(database, { jobId: job.id, operator, egress, max, now: clock.now() })

const claimFor = (bench: Bench, egress: string) => claim(bench, 100, 'op', egress)

const dueAtOf = ({ database, job }: Bench, egress = 'a') =>
  nextDueAt(database, { jobId: job.id, operator: 'op', egress })

const postpone = ({ database, job, clock }: Bench, ...items: (Partial<Postponed> & At)[]) => {
  const defaults = { dueAt: clock.now(), tries: 1, egress: null, refusedBy: [] }
  const postponed = items.map(item => ({ ...defaults, ...item }))
  return write(database, trx => postponeItems(trx, job.id, postponed))
}
type At = Pick<Postponed, 'position'>

async function routedJob(texts: readonly string[]): Promise<Bench> {
  const bench = await queuedJob(texts)
  await fileAll(bench.database, bench.job.id)
  return bench
}

const listStates = async ({ database }: Bench) =>
  (await database.db.selectFrom('item').select('state').orderBy('position').execute()).map(
    ({ state }) => state,
  )

describe('queued items', () => {
  test('are listed in list order, page by page, without duplicates', async () => {
    const { database, job } = await queuedJob(['a', 'b', 'a', 'c', 'd'])
    const page = (after: number) => queuedItems(database, { jobId: job.id, after, max: 2 })
    expect((await page(0)).map(({ position }) => position)).toEqual([1, 2])
    expect((await page(2)).map(({ position }) => position)).toEqual([4, 5])
    expect(await page(5)).toEqual([])
    expect((await page(0))[0]).toEqual({ position: 1, text: 'a', copies: 2 })
  })

  test('wait for their operator once routed, due at once', async () => {
    const bench = await routedJob(['a@x.test', 'b@y.test', 'c@x.test'])
    const { database, job, clock } = bench
    expect(await jobsWaitingFor(database, 'op')).toEqual([job.id])
    expect(await dueAtOf(bench)).toBe(clock.now())
    expect(await listStates(bench)).toEqual(['routed', 'routed', 'routed'])
    expect(await queuedItems(database, { jobId: job.id, after: 0, max: 9 })).toEqual([])
  })
})

describe('a claim', () => {
  test('claims complete domains first, so that few transactions serve them', async () => {
    const bench = await routedJob(['1@b.test', '2@a.test', '3@b.test', '4@a.test', '5@c.test'])
    expect((await claim(bench, 3)).map(({ text }) => text)).toEqual([
      ...['1@b.test', '2@a.test', '4@a.test'],
    ])
    expect((await claim(bench, 3)).map(({ text }) => text)).toEqual(['3@b.test', '5@c.test'])
    expect(await claim(bench, 3)).toEqual([])
    expect(await listStates(bench)).toEqual(Array(5).fill('probing'))
  })

  test('never claims an item twice, even with many concurrent claims', async () => {
    const texts = Array.from({ length: 200 }, (_, n) => `u${n}@d${n % 9}.test`)
    const bench = await routedJob(texts)
    const claims = await Promise.all(Array.from({ length: 30 }, () => claim(bench, 9)))
    const positions = claims.flat().map(({ position }) => position)
    expect(positions).toHaveLength(200)
    expect(new Set(positions).size).toBe(200)
    expect(claims.every(({ length }) => length <= 9)).toBe(true)
  })

  test('claims no item of another operator or job', async () => {
    const bench = await routedJob(['a@x.test'])
    await addJob(bench.database, ['b@x.test'], 'job_b')
    await fileAll(bench.database, 'job_b')
    expect(await claim(bench, 9, 'other')).toEqual([])
    expect((await claim(bench)).map(({ text }) => text)).toEqual(['a@x.test'])
    expect(await jobsWaitingFor(bench.database, 'op')).toEqual(['job_b'])
  })

  test('finds the jobs that wait for an operator, and pages through waiting operators', async () => {
    const bench = await routedJob(['a@x.test', 'b@x.test'])
    const { database } = bench
    for (const id of ['job_c', 'job_b']) {
      await addJob(database, ['a@x.test', 'a@y.test'], id)
      await fileAll(database, id, text => ({ operator: text.slice(2), domain: text.slice(2) }))
    }
    expect(await jobsWaitingFor(database, 'op')).toEqual(['job_a'])
    expect(await jobsWaitingFor(database, 'x.test')).toEqual(['job_b', 'job_c'])
    expect(await jobsWaitingFor(database, 'nobody')).toEqual([])
    const first = await listWaitingPairs(database, { after: { operator: '', jobId: '' }, max: 3 })
    expect(first).toEqual([
      { operator: 'op', jobId: 'job_a' },
      { operator: 'x.test', jobId: 'job_b' },
      { operator: 'x.test', jobId: 'job_c' },
    ])
    const after = first[2] as (typeof first)[number]
    expect(await listWaitingPairs(database, { after, max: 3 })).toEqual([
      { operator: 'y.test', jobId: 'job_b' },
      { operator: 'y.test', jobId: 'job_c' },
    ])
    await claim(bench)
    expect(await jobsWaitingFor(database, 'op')).toEqual([])
  })

  test('claims only due items; postponed items are claimed when due', async () => {
    const bench = await routedJob(['a@x.test', 'b@x.test'])
    const { clock } = bench
    await claim(bench)
    const dueAt = clock.now() + 60_000
    await postpone(bench, { position: 2, dueAt })
    expect(await claim(bench)).toEqual([])
    expect(await dueAtOf(bench)).toBe(dueAt)
    await clock.advance(59_999)
    expect(await claim(bench)).toEqual([])
    await clock.advance(1)
    expect(await claim(bench)).toMatchObject([{ position: 2, tries: 1, ready_at: dueAt - 60_000 }])
    expect(await dueAtOf(bench)).toBeNull()
  })

  test('is repeated when the job is started after a crash', async () => {
    const bench = await routedJob(['a@x.test', 'b@x.test'])
    expect(await claim(bench)).toHaveLength(2)
    await startJob(bench.database, bench.job.id)
    expect(await claim(bench)).toHaveLength(2)
  })
})

describe('an item pinned to an egress', () => {
  test('is claimed only by that egress; other items by any', async () => {
    const bench = await routedJob(['a@x.test', 'b@x.test', 'c@x.test'])
    await claim(bench)
    await postpone(bench, { position: 1, egress: 'a' }, { position: 2, egress: 'b' })
    await postpone(bench, { position: 3 })
    expect((await claimFor(bench, 'b')).map(({ position }) => position)).toEqual([2, 3])
    expect(await claimFor(bench, 'c')).toEqual([])
    expect(await dueAtOf(bench, 'c')).toBeNull()
    expect(await dueAtOf(bench, 'a')).toBe(bench.clock.now())
    expect((await claimFor(bench, 'a')).map(({ position }) => position)).toEqual([1])
  })

  test('can be claimed separately from unpinned items, due or not', async () => {
    const bench = await routedJob(['a@x.test', 'b@x.test'])
    const { database, job, clock } = bench
    const own = { jobId: job.id, operator: 'op', egress: 'a', pinnedOnly: true }
    expect(await nextDueAt(database, own)).toBeNull()
    await claim(bench, 1)
    await postpone(bench, { position: 1, egress: 'a', dueAt: clock.now() + 60_000 })
    const claimed = await claimItems(database, { ...own, max: 9, now: Number.MAX_SAFE_INTEGER })
    expect(claimed.map(({ position }) => position)).toEqual([1])
  })

  test('stores its egress and those that were blocked before', async () => {
    const bench = await routedJob(['a@x.test', 'b@x.test'])
    expect(await claim(bench)).toMatchObject(Array(2).fill({ egress: null, refused_by: null }))
    await postpone(bench, { position: 1, egress: 'c', refusedBy: ['a', 'b'] })
    expect(await claimFor(bench, 'c')).toMatchObject([{ egress: 'c', refused_by: 'a b' }])
    await postpone(bench, { position: 1, accepted: '{"at":1}' })
    expect(await claimFor(bench, 'c')).toMatchObject([
      { egress: null, refused_by: null, accepted: '{"at":1}' },
    ])
    await postpone(bench, { position: 1 })
    expect(await claimFor(bench, 'c')).toMatchObject([{ accepted: null }])
  })

  test('is listed by operator and can be unpinned, due at once with its tries reset', async () => {
    const bench = await routedJob(['a@x.test', 'b@x.test', 'c@x.test'])
    const { database, job, clock } = bench
    await claim(bench)
    const dueAt = clock.now() + 60_000
    await postpone(bench, { position: 1, egress: 'gone', dueAt, tries: 2, refusedBy: ['a'] })
    await postpone(bench, { position: 2, egress: 'b', dueAt, tries: 2 }, { position: 3 })
    expect((await pinnedItems(database, job.id)).toSorted(byEgress)).toEqual([
      { operator: 'op', egress: 'b' },
      { operator: 'op', egress: 'gone' },
    ])
    await unpinItems(database, { jobId: job.id, operator: 'op', egress: 'gone' })
    expect(await pinnedItems(database, job.id)).toEqual([{ operator: 'op', egress: 'b' }])
    expect(await claimFor(bench, 'a')).toMatchObject([
      { position: 1, tries: 0, egress: null, refused_by: 'a' },
      { position: 3, tries: 1 },
    ])
    expect(await dueAtOf(bench, 'b')).toBe(dueAt)
  })
})

const byEgress = (a: { egress: string }, b: { egress: string }) => (a.egress < b.egress ? -1 : 1)

describe('a result', () => {
  const record = ({ database, job }: Bench, position: number, result: string) =>
    write(database, trx =>
      recordResults(trx, ofJob(job.id, [{ position, result, class: 'risky' }])),
    )

  const pages = async ({ database, job }: Bench, max: number, after = 0) =>
    (await resultPage(database, { jobId: job.id, after, max })).map(({ position, result }) => ({
      position,
      result,
    }))

  test('is accepted exactly once', async () => {
    const bench = await routedJob(['a@x.test'])
    await record(bench, 1, '"first"')
    await record(bench, 1, '"second"')
    expect(await pages(bench, 9)).toEqual([{ position: 1, result: '"first"' }])
    expect(await listStates(bench)).toEqual(['done'])
  })

  test('is not undone by a late postponement or a start of the job', async () => {
    const bench = await routedJob(['a@x.test'])
    await claim(bench)
    await record(bench, 1, '"first"')
    await postpone(bench, { position: 1 })
    await startJob(bench.database, bench.job.id)
    expect(await listStates(bench)).toEqual(['done'])
    expect(await claim(bench)).toEqual([])
  })

  test('applies to all duplicates, in list order and page by page', async () => {
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
