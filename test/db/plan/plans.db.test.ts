import { describe, expect, test } from 'vitest'
import { type Database, write } from '../../../src/db/database.ts'
import { deleteCachedAnswers, getCachedAnswers } from '../../../src/jobs/cached-answers.ts'
import {
  claimItems,
  jobsWaitingFor,
  nextDueAt,
  pinnedItems,
  unpinItems,
  waitingPage,
} from '../../../src/jobs/item-claims.ts'
import { postponeItems, queuedItems, recordResults } from '../../../src/jobs/item-store.ts'
import { countResults, startJob } from '../../../src/jobs/job-state.ts'
import { unfinishedJob } from '../../../src/jobs/job-store.ts'
import { resultPage } from '../../../src/jobs/results/result-store.ts'
import { fileAll, onPostgres, queuedJob } from '../../support/database.ts'
import { plansOf } from './query-plans.ts'

/** An index that is not used makes nothing wrong, only slow, and a list of a million rows shows it too late. */
describe.skipIf(onPostgres)('a statement on a long list goes by its index', () => {
  const job = { jobId: 'job_a' }
  const share = { ...job, operator: 'op', egress: 'a' }
  const put = { position: 2, dueAt: 0, tries: 1, egress: null, refusedBy: [] }
  const counts = { deliverable: 1, risky: 0, undeliverable: 0, unknown: 0 }

  test.each<[string, (database: Database) => Promise<unknown>, RegExp]>([
    ['what is queued', db => queuedItems(db, { ...job, after: 0, max: 9 }), /item_queued/],
    [
      'a claim',
      db => claimItems(db, { ...share, max: 9, now: 0 }),
      /COVERING INDEX item_routed \(operator=\? AND job_id=\?/,
    ],
    [
      'a claim of what is bound to one egress',
      db => claimItems(db, { ...share, ownOnly: true, max: 9, now: 0 }),
      /COVERING INDEX item_bound \(job_id=\? AND operator=\? AND egress=\?/,
    ],
    [
      'a claim of what a backup can be asked about',
      db => claimItems(db, { ...share, backedUpOnly: true, max: 9, now: 0 }),
      /item_backup \(job_id=\? AND operator=\?/,
    ],
    ['the next due time', db => nextDueAt(db, share), /COVERING INDEX item_routed/],
    [
      'the next due time of what is bound to one egress',
      db => nextDueAt(db, { ...share, ownOnly: true }),
      /COVERING INDEX item_bound/,
    ],
    ['the egresses that items are bound to', db => pinnedItems(db, 'job_a'), /item_bound/],
    ['freeing what is bound', db => unpinItems(db, share), /item_bound \(job_id=\? AND operator/],
    [
      'the jobs that wait for an operator',
      db => jobsWaitingFor(db, 'op'),
      /SEARCH item USING COVERING INDEX item_routed \(operator=\? AND job_id>\?\)/,
    ],
    [
      'the operators that wait',
      db => waitingPage(db, { after: { operator: '', jobId: '' }, max: 9 }),
      /COVERING INDEX item_routed/,
    ],
    ['taking a job up', db => startJob(db, 'job_a'), /item_probing/],
    [
      'a result',
      db =>
        write(db, trx =>
          recordResults(trx, 'job_a', [{ position: 1, result: '{}', class: 'risky' }]),
        ),
      /item.* \(job_id=\? AND position=\?\)/,
    ],
    [
      'a postponement',
      db => write(db, trx => postponeItems(trx, 'job_a', [put])),
      /item_probing|\(job_id=\? AND position=\?\)/,
    ],
    ['counting', db => write(db, trx => countResults(trx, 'job_a', counts, 0)), /job.* \(id=\?\)/],
    [
      'a page of results',
      db => resultPage(db, { ...job, after: 0, max: 9 }),
      /first.* \(job_id=\? AND position=\?\)/,
    ],
    ['the job of a source', db => unfinishedJob(db, 'source of job_a'), /job_source/],
    ['what is remembered', db => getCachedAnswers(db, ['a', 'b']), /answer.* \(address_key=\?\)/],
    ['forgetting', db => write(db, trx => deleteCachedAnswers(trx, 0)), /answer_expiry/],
  ])('%s', async (_, run, index) => {
    const { database } = await queuedJob(Array.from({ length: 50 }, (_, n) => `u${n}@x.test`))
    await fileAll(database, 'job_a')
    const plan = await plansOf(database, run)
    expect(plan.join('\n')).toMatch(index)
    expect(plan.filter(line => /TEMP B-TREE/.test(line))).toEqual([])
    expect(plan.filter(line => /^SCAN (item|job|answer)\b(?!.*USING)/.test(line))).toEqual([])
  })
})
