import { describe, expect, test } from 'vitest'
import { write } from '../../../src/db/database.ts'
import { sandboxResult } from '../../../src/engine/sandbox.ts'
import { toClass } from '../../../src/engine/verdict/verdict.ts'
import { addItems } from '../../../src/jobs/import/item-import.ts'
import { recordResults } from '../../../src/jobs/item-store.ts'
import { createJob } from '../../../src/jobs/job-store.ts'
import {
  type FindOptions,
  findResults,
  resultPage,
} from '../../../src/jobs/results/result-store.ts'
import { plansOf } from '../../db/plan/query-plans.ts'
import { onPostgres, queuedJob, tempDatabase } from '../../support/database.ts'
import { ofJob } from '../../support/job-rows.ts'
import { queueJob } from '../../support/queue-job.ts'

test('returns a row with its text, its cells and the class of its result', async () => {
  const database = await tempDatabase()
  await createJob(database, { id: 'j', sourceKey: 's', source: '{}' })
  await addItems(database, 'j', [
    { position: 1, text: 'Ann@x.test', dedupeKey: 'a', cells: '["7","Ann"]' },
    { position: 2, text: 'ann@x.test', dedupeKey: 'a', cells: null },
    { position: 3, text: 'bob@x.test', dedupeKey: 'b' },
  ])
  await queueJob(database, 'j')
  await write(database, trx =>
    recordResults(trx, ofJob('j', [{ position: 1, result: '"of a"', class: 'risky' }])),
  )
  expect(await resultPage(database, { jobId: 'j', after: 0, max: 9 })).toEqual([
    {
      position: 1,
      text: 'Ann@x.test',
      dedupeKey: 'a',
      cells: '["7","Ann"]',
      class: 'risky',
      result: '"of a"',
      previous: null,
    },
    {
      position: 2,
      text: 'ann@x.test',
      dedupeKey: 'a',
      cells: null,
      class: 'risky',
      result: '"of a"',
      previous: null,
    },
    {
      position: 3,
      text: 'bob@x.test',
      dedupeKey: 'b',
      cells: null,
      class: null,
      result: null,
      previous: null,
    },
  ])
})

test('returns rows of some classes page by page, even if they are far apart', async () => {
  const total = 6_100
  const { database, job } = await queuedJob(Array.from({ length: total }, (_, n) => `t${n}`))
  const rare = [1, 1_999, 2_000, 2_001, 6_100]
  const results = Array.from({ length: total }, (_, n) => {
    const isRare = rare.includes(n + 1)
    const klass = isRare ? (n % 2 === 0 ? 'unknown' : 'risky') : 'deliverable'
    return { position: n + 1, result: '{}', class: klass }
  })
  await write(database, trx => recordResults(trx, ofJob(job.id, results)))
  const page = async (after: number, max: number) => {
    const classes = ['unknown', 'risky'] as const
    const rows = await resultPage(database, { jobId: job.id, after, max, classes })
    return rows.map(({ position }) => position)
  }
  expect(await page(0, 3)).toEqual([1, 1_999, 2_000])
  expect(await page(2_000, 3)).toEqual([2_001, 6_100])
  expect(await page(6_100, 3)).toEqual([])
  expect(await page(0, 9)).toEqual(rare)
})

test('ends a page when the data of its rows reach a length', async () => {
  const database = await tempDatabase()
  await createJob(database, { id: 'j', sourceKey: 'k', source: '{}' })
  const cells = (length: number) => JSON.stringify(['x'.repeat(length - 4)])
  const lengths = [10, 10, 100, 10, 0, 10]
  await addItems(
    database,
    'j',
    lengths.map((length, n) => ({
      position: n + 1,
      text: `t${n}`,
      dedupeKey: `t${n}`,
      cells: length === 0 ? null : cells(length),
    })),
  )
  const page = async (after: number, lengthMax: number, max = 9) => {
    const rows = await resultPage(database, { jobId: 'j', after, max, lengthMax })
    return rows.map(({ position }) => position)
  }
  expect(await page(0, 15)).toEqual([1, 2])
  expect(await page(2, 15)).toEqual([3])
  expect(await page(3, 15)).toEqual([4, 5, 6])
  expect(await page(0, 1_000, 4)).toEqual([1, 2, 3, 4])
  expect(await page(6, 15)).toEqual([])
})

describe('finding rows', () => {
  test('returns all rows without a filter, including those without a result', async () => {
    const { find } = await createVerifiedJob(
      ['valid1@a.test', 'timeout2@a.test', 'later@a.test'],
      2,
    )
    expect(await find({})).toEqual([[1, 2, 3], null])
    expect(await find({ max: 2 })).toEqual([[1, 2], 2])
    expect(await find({ after: 2 })).toEqual([[3], null])
    // A page with exactly all rows is complete.
    expect(await find({ max: 3 })).toEqual([[1, 2, 3], null])
    expect(await find({ after: 3 })).toEqual([[], null])
    expect(await find({ after: 99 })).toEqual([[], null])
  })

  test('filters by classes and reasons', async () => {
    const texts = [
      'valid@a.test',
      'timeout@a.test',
      'greylisted@a.test',
      'catchall@a.test',
      'x@a.test',
    ]
    const { find } = await createVerifiedJob(texts, 4)
    expect(await find({ classes: ['unknown', 'risky'] })).toEqual([[2, 3, 4], null])
    expect(await find({ reasons: ['greylisted', 'accepted_email'] })).toEqual([[1, 3], null])
    expect(await find({ reasons: ['timeout'], classes: ['risky'] })).toEqual([[], null])
    expect(await find({ reasons: ['timeout'], search: 'GREY' })).toEqual([[], null])
  })

  test('by reason finds catch-all addresses that feedback made deliverable', async () => {
    const { find, database } = await createVerifiedJob(['catchall1@a.test', 'catchall2@a.test'], 2)
    await database.db
      .updateTable('item')
      .set({ class: 'deliverable' })
      .where('position', '=', 2)
      .execute()
    expect(await find({ reasons: ['catch_all'] })).toEqual([[1, 2], null])
    expect(await find({ reasons: ['catch_all'], classes: ['deliverable'] })).toEqual([[2], null])
  })

  test('searches addresses without regard to case', async () => {
    const { find } = await createVerifiedJob(
      ['Ann@Shop.test', 'bob@shop.test', 'MÜLLER@a.test', 'müller@b.test', '50%_off@a.test'],
      0,
    )
    expect(await find({ search: '@sHOP' })).toEqual([[1, 2], null])
    expect(await find({ search: 'MüL' })).toEqual([[3, 4], null])
    expect(await find({ search: 'üller@B' })).toEqual([[4], null])
    expect(await find({ search: '%' })).toEqual([[5], null])
    expect(await find({ search: '_' })).toEqual([[5], null])
  })

  test('continues after other rows with letters beyond ASCII', async () => {
    const { find } = await createVerifiedJob(['é1@a.test', 'é2@a.test', 'é3@a.test', 'ü@a.test'], 0)
    expect(await find({ search: 'Ü@', max: 1 })).toEqual([[4], null])
  })

  test('returns duplicates with the result of their first row', async () => {
    const database = await tempDatabase()
    await createJob(database, { id: 'j', sourceKey: 's', source: '{}' })
    await addItems(database, 'j', [
      { position: 1, text: 'Timeout@x.test', dedupeKey: 'a', cells: '["a long row"]' },
      { position: 2, text: 'timeout@x.test', dedupeKey: 'a' },
    ])
    await queueJob(database, 'j')
    const result = JSON.stringify(sandboxResult(database.clock, 'Timeout@x.test'))
    await write(database, trx =>
      recordResults(trx, ofJob('j', [{ position: 1, result, class: 'unknown' }])),
    )
    const { rows } = await findResults(database, {
      jobId: 'j',
      after: 0,
      max: 9,
      reasons: ['timeout'],
    })
    expect(rows).toEqual([
      {
        position: 1,
        text: 'Timeout@x.test',
        dedupeKey: 'a',
        cells: null,
        class: 'unknown',
        result,
        previous: null,
      },
      {
        position: 2,
        text: 'timeout@x.test',
        dedupeKey: 'a',
        cells: null,
        class: 'unknown',
        result,
        previous: null,
      },
    ])
  })

  test('returns erased rows with the default reason of their class', async () => {
    const { database, find } = await createVerifiedJob(
      ['mailbox-full@a.test', 'catchall@a.test'],
      2,
    )
    await database.db.updateTable('item').set({ result: 'null', text: '' }).execute()
    expect(await find({ reasons: ['low_deliverability'] })).toEqual([[1, 2], null])
    expect(await find({ reasons: ['mailbox_full', 'accepted_email'] })).toEqual([[], null])
  })

  test('scans a limited number of rows per search and continues from there', async () => {
    const texts = Array.from(
      { length: 2_500 },
      (_, n) => `${n === 2_100 ? 'rare' : 'often'}${n}@a.test`,
    )
    const { find } = await createVerifiedJob(texts, 0)
    const search = { search: 'rare', scannedMax: 1_200 }
    expect(await find(search)).toEqual([[], 1_200])
    expect(await find({ ...search, after: 1_200 })).toEqual([[2_101], 2_400])
    expect(await find({ ...search, after: 2_400 })).toEqual([[], null])
    expect(await find({ search: 'rare' })).toEqual([[2_101], null])
    // Exactly as many rows as requested, and no more after them.
    expect(await find({ search: 'often12@', max: 1 })).toEqual([[13], null])
    expect(await find({ search: 'often', after: 990, max: 20 })).toEqual([
      Array.from({ length: 20 }, (_, n) => 991 + n),
      1_010,
    ])
  })

  test.skipIf(onPostgres)('reads rows by position without sorting', async () => {
    const { database } = await createVerifiedJob(['valid@a.test'], 1)
    const plan = await plansOf(database, db =>
      findResults(db, { jobId: 'job_a', after: 0, max: 9, reasons: ['timeout'], search: 'a' }),
    )
    expect(plan.join('\n')).toMatch(/SEARCH item .*\(job_id=\? AND position>\? AND position<\?\)/)
    expect(plan.filter(line => /TEMP B-TREE|^SCAN/.test(line))).toEqual([])
  })
})

/** Creates a job with results. `find` returns the positions found and the next position. */
async function createVerifiedJob(texts: readonly string[], done: number) {
  const { database, job, clock } = await queuedJob(texts)
  const results = texts.slice(0, done).map((text, n) => {
    const result = sandboxResult(clock, text)
    return { position: n + 1, result: JSON.stringify(result), class: toClass(result.verdict) }
  })
  await write(database, trx => recordResults(trx, ofJob(job.id, results)))
  const find = async (o: Partial<FindOptions>) => {
    const { rows, next } = await findResults(database, { jobId: job.id, after: 0, max: 50, ...o })
    return [rows.map(({ position }) => position), next]
  }
  return { database, find }
}
