import { expect, test } from 'vitest'
import { findSortedResults, SORT_FIELDS } from '../../../src/jobs/results/sorted-results.ts'
import { plansOf } from '../../db/plan/query-plans.ts'
import { onPostgres, tempDatabase } from '../../support/database.ts'
import { seedJob } from '../../support/job-rows.ts'

/** A list with letters beyond ASCII, whose case the databases fold differently. */
const TEXTS = ['valid-zoë@a.test', 'VALID-Österreich@a.test', 'risky@B.test', 'timeout@c.test', 'x']

const page = { jobId: 'job_a', after: null, max: 9 }

async function verifiedJob() {
  const database = await tempDatabase()
  await seedJob(database, { texts: TEXTS })
  return database
}

test('both databases sort and search letters beyond ASCII alike', async () => {
  const database = await verifiedJob()
  const found = async (o: Partial<Parameters<typeof findSortedResults>[1]>) => {
    const order = { field: 'email', isDescending: false } as const
    const { rows, total, offset } = await findSortedResults(database, { ...page, order, ...o })
    return [rows.map(({ position }) => Number(position)), total, offset]
  }
  expect(await found({})).toEqual([[3, 4, 1, 2, 5], 5, 0])
  expect(await found({ search: 'ÖST' })).toEqual([[2], 1, 0])
  expect(await found({ search: 'valid', max: 1 })).toEqual([[1], 2, 0])
  const order = { field: 'operator', isDescending: true } as const
  expect(await found({ order })).toEqual([[1, 2, 3, 4, 5], 5, 0])
})

test('a scan ends when its client is gone', async () => {
  const database = await verifiedJob()
  const order = { field: 'email', isDescending: false } as const
  const signal = AbortSignal.abort()
  expect(await findSortedResults(database, { ...page, order, signal })).toMatchObject({ total: 0 })
})

test.skipIf(onPostgres).each(SORT_FIELDS)(
  'sorts by %s in chunks that are read by position',
  async field => {
    const database = await verifiedJob()
    const order = { field, isDescending: true }
    const plan = await plansOf(database, db =>
      findSortedResults(db, { ...page, order, search: 'a', reasons: ['timeout'] }),
    )
    expect(plan.join('\n')).toMatch(/SEARCH item .*\(job_id=\? AND position>\? AND position<\?\)/)
    expect(plan.filter(line => /TEMP B-TREE|^SCAN/.test(line))).toEqual([])
  },
)
