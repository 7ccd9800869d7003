import { describe, expect, test } from 'vitest'
import { type Database, write } from '../../../src/db/database.ts'
import { deleteCachedAnswers, getCachedAnswers } from '../../../src/jobs/cached-answers.ts'
import { jobsWaitingFor, pinnedItems, unpinItems } from '../../../src/jobs/item-claims.ts'
import { postponeItems, queuedItems, recordResults } from '../../../src/jobs/item-store.ts'
import { countResults, startJob } from '../../../src/jobs/job-state.ts'
import { unfinishedJob } from '../../../src/jobs/job-store.ts'
import { resultPage } from '../../../src/jobs/results/result-store.ts'
import { fileAll, onPostgres, queuedJob } from '../../support/database.ts'
import { ofJob } from '../../support/job-rows.ts'
import { plansOf } from './query-plans.ts'

/** A missing index only makes queries slow, which shows only on lists of a million rows. */
describe.skipIf(onPostgres)('a statement on a long list uses its index', () => {
  const job = { jobId: 'job_a' }
  const share = { ...job, operator: 'op', egress: 'a' }
  const put = { position: 2, dueAt: 0, tries: 1, egress: null, refusedBy: [] }
  const counts = { deliverable: 1, risky: 0, undeliverable: 0, unknown: 0 }

  test.each<[string, (database: Database) => Promise<unknown>, RegExp]>([
    ['queued items', db => queuedItems(db, { ...job, after: 0, max: 9 }), /item_queued/],
    ['the egresses of pinned items', db => pinnedItems(db, 'job_a'), /item_bound/],
    ['unpinning items', db => unpinItems(db, share), /item_bound \(job_id=\? AND operator/],
    [
      'the jobs that wait for an operator',
      db => jobsWaitingFor(db, 'op'),
      /SEARCH item USING COVERING INDEX item_routed \(operator=\? AND job_id>\?\)/,
    ],
    ['starting a job', db => startJob(db, 'job_a'), /item_probing/],
    [
      'a result',
      db =>
        write(db, trx =>
          recordResults(trx, ofJob('job_a', [{ position: 1, result: '{}', class: 'risky' }])),
        ),
      /item.* \(job_id=\? AND position=\?\)/,
    ],
    [
      'a postponement',
      db => write(db, trx => postponeItems(trx, 'job_a', [put])),
      /item_probing|\(job_id=\? AND position=\?\)/,
    ],
    [
      'counting',
      db => write(db, trx => countResults(trx, new Map([['job_a', counts]]), 0)),
      /job.* \(id=\?\)/,
    ],
    [
      'a page of results',
      db => resultPage(db, { ...job, after: 0, max: 9 }),
      /first.* \(job_id=\? AND position=\?\)/,
    ],
    ['the job of a source', db => unfinishedJob(db, 'source of job_a'), /job_source/],
    ['cached answers', db => getCachedAnswers(db, ['a', 'b']), /answer.* \(address_key=\?\)/],
    [
      'deleting cached answers',
      db => write(db, trx => deleteCachedAnswers(trx, 0)),
      /answer_expiry/,
    ],
  ])('%s', async (_, run, index) => {
    const { database } = await queuedJob(Array.from({ length: 50 }, (_, n) => `u${n}@x.test`))
    await fileAll(database, 'job_a')
    const plan = await plansOf(database, run)
    expect(plan.join('\n')).toMatch(index)
    expect(plan.filter(line => /TEMP B-TREE/.test(line))).toEqual([])
    expect(plan.filter(line => /^SCAN (item|job|answer)\b(?!.*USING)/.test(line))).toEqual([])
  })
})
