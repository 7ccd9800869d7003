import { describe, expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { jobsWaitingFor, pinnedItems, unpinItems } from '../../src/jobs/item-claims.ts'
import {
  type Postponed,
  postponeItems,
  queuedItems,
  recordResults,
} from '../../src/jobs/item-store.ts'
import { startJob } from '../../src/jobs/job-state.ts'
import { resultPage } from '../../src/jobs/results/result-store.ts'
import { addJob, type Bench, fileAll, onPostgres, queuedJob } from '../support/database.ts'
import { ofJob } from '../support/job-rows.ts'

/** Claims all routed items. */
const claim = async ({ database, job }: Bench) => {
  await database.db
    .updateTable('item')
    .set({ state: 'probing', holder: onPostgres ? 'mem_gone' : null })
    .where('job_id', '=', job.id)
    .where('state', '=', 'routed')
    .execute()
}

const readItem = async ({ database }: Bench, position: number) => {
  const items = database.db.selectFrom('item').selectAll().where('position', '=', position)
  return items.executeTakeFirstOrThrow()
}

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
    expect(await readItem(bench, 1)).toMatchObject({ due_at: clock.now() })
    expect(await listStates(bench)).toEqual(['routed', 'routed', 'routed'])
    expect(await queuedItems(database, { jobId: job.id, after: 0, max: 9 })).toEqual([])
  })
})

describe('a claimed item', () => {
  test('is released when the job is started after a crash: it is as before its claim', async () => {
    const bench = await routedJob(['a@x.test', 'b@x.test'])
    const { database } = bench
    await database.db
      .updateTable('item')
      .set({ operator: null })
      .where('position', '=', 2)
      .execute()
    await claim(bench)
    await startJob(database, bench.job.id)
    expect(await listStates(bench)).toEqual(['routed', 'queued'])
  })

  test('waits for its due time after a postponement', async () => {
    const bench = await routedJob(['a@x.test'])
    const readyAt = bench.clock.now()
    await claim(bench)
    await postpone(bench, { position: 1, dueAt: readyAt + 60_000 })
    expect(await readItem(bench, 1)).toMatchObject({
      state: 'routed',
      tries: 1,
      due_at: readyAt + 60_000,
      ready_at: readyAt,
    })
  })

  test('stores its egress, those that were blocked before, and its acceptance', async () => {
    const bench = await routedJob(['a@x.test'])
    await claim(bench)
    await postpone(bench, { position: 1, egress: 'c', refusedBy: ['a', 'b'] })
    expect(await readItem(bench, 1)).toMatchObject({ egress: 'c', refused_by: 'a b' })
    await claim(bench)
    await postpone(bench, { position: 1, accepted: '{"at":1}' })
    const accepted = { egress: null, refused_by: null, accepted: '{"at":1}' }
    expect(await readItem(bench, 1)).toMatchObject(accepted)
    await claim(bench)
    await postpone(bench, { position: 1 })
    expect(await readItem(bench, 1)).toMatchObject({ accepted: null })
  })
})

describe('items pinned to an egress', () => {
  test('are listed by operator and can be unpinned, due at once with their tries reset', async () => {
    const bench = await routedJob(['a@x.test', 'b@x.test', 'c@x.test', 'd@x.test'])
    const { database, job, clock } = bench
    await claim(bench)
    const dueAt = clock.now() + 60_000
    await postpone(bench, { position: 1, egress: 'gone', dueAt, tries: 2, refusedBy: ['a'] })
    await postpone(bench, { position: 2, egress: 'b', dueAt, tries: 2 }, { position: 3 })
    await postpone(bench, { position: 4, egress: 'gone', dueAt, tries: 0 })
    expect((await pinnedItems(database, job.id)).toSorted(byEgress)).toEqual([
      { operator: 'op', egress: 'b' },
      { operator: 'op', egress: 'gone' },
    ])
    const gone = { jobId: job.id, operator: 'op', egress: 'gone' }
    await unpinItems(database, { ...gone, isUntried: true })
    expect(await readItem(bench, 4)).toMatchObject({ egress: null, due_at: clock.now() })
    expect(await readItem(bench, 1)).toMatchObject({ egress: 'gone', due_at: dueAt })
    await unpinItems(database, gone)
    expect(await pinnedItems(database, job.id)).toEqual([{ operator: 'op', egress: 'b' }])
    expect(await readItem(bench, 1)).toMatchObject({ egress: null, tries: 0, refused_by: 'a' })
  })
})

const byEgress = (a: { egress: string }, b: { egress: string }) => (a.egress < b.egress ? -1 : 1)

test('finds the jobs that wait for an operator', async () => {
  const bench = await routedJob(['a@x.test', 'b@x.test'])
  const { database } = bench
  for (const id of ['job_c', 'job_b']) {
    await addJob(database, ['a@x.test', 'a@y.test'], id)
    await fileAll(database, id, text => ({ operator: text.slice(2), domain: text.slice(2) }))
  }
  expect(await jobsWaitingFor(database, 'op')).toEqual(['job_a'])
  expect(await jobsWaitingFor(database, 'x.test')).toEqual(['job_b', 'job_c'])
  expect(await jobsWaitingFor(database, 'nobody')).toEqual([])
  await claim(bench)
  expect(await jobsWaitingFor(database, 'op')).toEqual([])
})

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
