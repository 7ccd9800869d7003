import { expect, test } from 'vitest'
import { findResults } from '../../../src/jobs/results/result-store.ts'
import { plansOf } from '../../db/plan/query-plans.ts'
import { onPostgres, queuedJob } from '../../support/database.ts'

test.skipIf(onPostgres)('reads rows by position without sorting', async () => {
  const { database } = await queuedJob(['valid@a.test'])
  const plan = await plansOf(database, db =>
    findResults(db, { jobId: 'job_a', after: 0, max: 9, reasons: ['timeout'], search: 'a' }),
  )
  expect(plan.join('\n')).toMatch(/SEARCH item .*\(job_id=\? AND position>\? AND position<\?\)/)
  expect(plan.filter(line => /TEMP B-TREE|^SCAN/.test(line))).toEqual([])
})
