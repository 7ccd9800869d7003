import { sql } from 'kysely'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  addHistory,
  deleteHistoryBefore,
  deleteJobHistory,
  deleteSandboxHistoryBefore,
  hasVerification,
} from '../../../src/accounts/credits/history.ts'
import { getHistoryPage } from '../../../src/accounts/credits/history-page.ts'
import { addUsage, listUsage } from '../../../src/accounts/credits/usage.ts'
import { endSessionsOfKey, findKeyByHash, listKeys } from '../../../src/accounts/key-store.ts'
import { createSession, findSession, listSessions } from '../../../src/accounts/session-store.ts'
import { type Database, write } from '../../../src/db/database.ts'
import {
  deleteCachedAnswers,
  getCachedAnswers,
  putCachedAnswers,
} from '../../../src/jobs/cached-answers.ts'
import { deleteJob } from '../../../src/jobs/delete-job.ts'
import { markCopies } from '../../../src/jobs/import/item-import.ts'
import {
  claimDueItems,
  claimPinnedItems,
  claimQueuedItems,
  claimRoutedItems,
  claimWaitingItems,
  findClaimable,
  jobsWaitingFor,
  pinnedItems,
  releaseShare,
  unpinItems,
} from '../../../src/jobs/item-claims.ts'
import { postponeItems, recordResults } from '../../../src/jobs/item-store.ts'
import { accountJobs, getRemainingWork, openJobs } from '../../../src/jobs/job-list.ts'
import { countResults, startJob } from '../../../src/jobs/job-state.ts'
import { readJob, unfinishedJob } from '../../../src/jobs/job-store.ts'
import { countUnverified } from '../../../src/jobs/prepare-resume.ts'
import { countBreakdown } from '../../../src/jobs/results/breakdown.ts'
import { findResults, resultPage } from '../../../src/jobs/results/result-store.ts'
import { dueSchedules, listSchedules } from '../../../src/jobs/schedules/schedule-store.ts'
import { countWaitingAt, unroutedRows } from '../../../src/jobs/waits/backlog.ts'
import { verificationRow } from '../../support/account-rows.ts'
import { onPostgres, tempDatabase } from '../../support/database.ts'
import { ofJob } from '../../support/job-rows.ts'
import { plansOf } from './query-plans.ts'

/** PostgreSQL plans by its statistics: there must be many rows, as in a service in use. */
describe.runIf(onPostgres)('on PostgreSQL a statement on long lists uses its index', () => {
  const job = { jobId: 'job_7' }
  const share = { ...job, operator: 'op_3', egress: 'a' }
  const claim = { ...job, holder: 'm', max: 9 }
  const put = { position: 2, dueAt: 0, tries: 1, egress: null, refusedBy: [] }
  const counts = { deliverable: 1, risky: 0, undeliverable: 0, unknown: 0 }
  const query = { accountId: 'acc_7', sandbox: false, before: null, max: 9 }
  const verification = verificationRow({ account_id: 'acc_7' })

  const STATEMENTS: [string, (database: Database) => Promise<unknown>, RegExp][] = [
    [
      'a claim of queued items',
      db => claimQueuedItems(db, claim, '80'),
      /Index Scan using item_queued[\s\S]*Tid Scan/,
    ],
    [
      'a claim of due items',
      db => claimDueItems(db, claim, { egresses: ['a'], now: 9 }),
      /item_due[\s\S]*Tid Scan/,
    ],
    [
      'a claim of items that wait for room',
      db => claimWaitingItems(db, claim, { egresses: ['a'], operator: 'op_3', isBoundOnly: false }),
      /Index Scan using item_waiting[\s\S]*Tid Scan/,
    ],
    [
      'a claim of items pinned to one egress',
      db => claimPinnedItems(db, claim, share),
      /item_bound[\s\S]*Tid Scan/,
    ],
    ['a claim of all routed items', db => claimRoutedItems(db, claim), /item_due[\s\S]*Tid Scan/],
    [
      'what can be claimed',
      db => findClaimable(db, { lists: [{ ...job, isFinishing: false }], egresses: ['a'], now: 9 }),
      /Limit[\s\S]*item_queued[\s\S]*Limit[\s\S]*item_due[\s\S]*Limit[\s\S]*item_due[\s\S]*item_waiting/,
    ],
    [
      'the rows of other jobs that are not routed',
      db => unroutedRows(db, 'job_7'),
      /item_queued[\s\S]*job_id < [\s\S]*item_queued[\s\S]*job_id > /,
    ],
    [
      'the rows of other jobs that wait for an operator',
      db => countWaitingAt(db, 'op_3', 'job_7'),
      /item_routed[\s\S]*job_id < [\s\S]*item_routed[\s\S]*job_id > /,
    ],
    ['releasing a share', db => releaseShare(db, { jobId: 'job_7', holder: 'm' }), /item_holder/],
    ['the egresses of pinned items', db => pinnedItems(db, 'job_7'), /item_bound/],
    ['unpinning items', db => unpinItems(db, share), /item_bound/],
    ['the jobs that wait for an operator', db => jobsWaitingFor(db, 'op_3'), /item_routed/],
    ['starting a job', db => startJob(db, 'job_7'), /item_holder/],
    [
      'results',
      db =>
        write(db, trx =>
          recordResults(
            trx,
            ofJob('job_8', [
              { position: 71, result: '{}', class: 'risky' },
              { position: 72, result: '{}', class: 'risky' },
            ]),
          ),
        ),
      /item_key/,
    ],
    ['postponements', db => write(db, trx => postponeItems(trx, 'job_7', [put])), /item_key/],
    [
      'counting',
      db => write(db, trx => countResults(trx, new Map([['job_7', counts]]), 0)),
      /job_pkey/,
    ],
    ['a page of results', db => resultPage(db, { ...job, after: 9, max: 9 }), /item_key/],
    [
      'a page of results of a class',
      db => resultPage(db, { ...job, after: 9, max: 9, classes: ['risky'] }),
      /item_key/,
    ],
    [
      'searching results',
      db => findResults(db, { ...job, after: 9, max: 9, search: 'user9', reasons: ['timeout'] }),
      /item_key/,
    ],
    ['a breakdown', db => countBreakdown(db, 'job_7'), /item_key/],
    [
      'the cost of resuming',
      async db => countUnverified(db, await readJob(db, 'job_7')),
      /item_key/,
    ],
    [
      'the remaining work of a job',
      db => getRemainingWork(db, 'job_7'),
      /item_queued[\s\S]*item_holder/,
    ],
    [
      'marking duplicates',
      db => markCopies(db, 'job_7', [{ position: 5, copies: 2 }]),
      /item_(key|queued)/,
    ],
    ['deleting a job', db => deleteJob(db, 'job_9'), /schedule_latest[\s\S]*item_(key|queued)/],
    ['the due schedules', db => dueSchedules(db, 10, 100), /schedule_due/],
    [
      'the schedules of an account',
      db => listSchedules(db, { accountId: 'acc_7', sandbox: false, after: null, max: 9 }),
      /schedule_account/,
    ],
    ['the job of a source', db => unfinishedJob(db, 'source 7'), /job_source/],
    [
      'the jobs of an account',
      db => accountJobs(db, { accountId: 'acc_7', after: null, max: 9 }),
      /job_account/,
    ],
    ['the open jobs', db => openJobs(db), /job_open/],
    ['cached answers', db => getCachedAnswers(db, ['user1@x.test', 'b']), /answer_pkey/],
    ['caching answers', db => write(db, trx => putCachedAnswers(trx, new Map())), /^$/],
    [
      'deleting cached answers',
      db => write(db, trx => deleteCachedAnswers(trx, 9)),
      /answer_expiry/,
    ],
    ['a page of the history', db => getHistoryPage(db, query), /verification_key/],
    [
      'searching the history',
      db =>
        getHistoryPage(db, {
          ...query,
          before: { createdAt: 900, id: 'ver_900' },
          search: 'sought',
          classes: ['risky'],
          since: 1,
        }),
      /verification_key/,
    ],
    [
      'one verification',
      db =>
        write(db, trx =>
          hasVerification(trx, { accountId: 'acc_7', sandbox: false, createdAt: 7, id: 'ver_7' }),
        ),
      /verification_(key|age)/,
    ],
    [
      'deleting old history',
      db => write(db, trx => deleteHistoryBefore(trx, 9, 9)),
      /verification_age/,
    ],
    [
      'deleting old sandbox history',
      db => write(db, trx => deleteSandboxHistoryBefore(trx, 9, 9)),
      /verification_key/,
    ],
    [
      'deleting the history of a job',
      async db => deleteJobHistory(db, await readJob(db, 'job_7')),
      /verification_key/,
    ],
    [
      'writing history',
      db => write(db, trx => addHistory(trx, [verification])),
      /^Insert on verification/,
    ],
    ['a key by its hash', db => findKeyByHash(db, 'hash 7'), /key_secret_pkey/],
    ['the keys of an account', db => listKeys(db, 'acc_7'), /api_key_account/],
    ['a session', db => findSession(db, 'hash 7', 0), /session_hash_key/],
    ['the sessions of an account', db => listSessions(db, 'acc_7', 0), /session_account/],
    [
      'signing in',
      db =>
        write(db, trx =>
          createSession(trx, {
            id: 'ses_new',
            keyId: 'key_7',
            accountId: 'acc_7',
            ip: '',
            agent: '',
            hash: 'new',
            now: 9,
          }),
        ),
      /session_key/,
    ],
    ['signing out', db => write(db, trx => endSessionsOfKey(trx, 'key_9', null)), /session_key/],
    [
      'the usage of an account',
      db => listUsage(db, { accountId: 'acc_7', from: 0, to: 9 }),
      /usage_key/,
    ],
    ['counting usage', db => write(db, trx => addUsage(trx, [])), /^$/],
  ]

  test('and sorts no long lists', async () => {
    const database = await inUse()
    for (const [name, run, index] of STATEMENTS) {
      const plan = await plansOf(database, run)
      expect.soft(plan.join('\n'), name).toMatch(index)
      expect
        .soft(
          plan.filter(line => /Seq Scan on (?!member|account)/.test(line)),
          name,
        )
        .toEqual([])
    }
  })
})

/** 60 jobs of 1,000 rows, in all states, as many verifications and answers, 1,000 accounts. */
async function inUse(): Promise<Database> {
  const database = await tempDatabase()
  onTestFinished(() => database.close())
  const { db } = database
  await sql`
    insert into job (id, state, source_key, source, total, done, duplicates, deliverable, risky,
      undeliverable, unknown, created_at, finished_at, account_id, key_id, type)
    select 'job_' || n, case when n < 60 then 'processing' else 'completed' end, 'source ' || n,
      '{}', 1000, 0, 0, 0, 0, 0, 0, n, case when n < 60 then null else n end, 'acc_' || n % 1000,
      'key_' || n % 1000, 'batch'
    from generate_series(1, 20000) as n`.execute(db)
  await sql`
    insert into item (job_id, position, text, dedupe_key, state, same_as, copies, operator, domain,
      due_at, tries, result, class, egress)
    select 'job_' || j, n, text, text, state, case when state = 'same' then 1 end, 1,
      case when state in ('routed', 'probing') then 'op_' || n % 20 end, 'x.test',
      n % 2, 0,
      case when state = 'done' then '{"verdict":{"reason":"timeout"}}' end,
      case when state = 'done' then 'unknown' end,
      case when state = 'routed' and n % 10 = 3 then 'a' end
    from generate_series(1, 60) as j, generate_series(1, 1000) as n,
      lateral (select 'user' || n || '@x.test' as text, case when n % 100 < 70 then 'done'
        when n % 100 < 80 then 'queued' when n % 100 < 95 then 'routed'
        when n % 100 < 98 then 'probing' else 'same' end as state) as made`.execute(db)
  await sql`
    insert into answer (address_key, remembered, keep_until)
    select 'user' || n || '@x.test', '{}', case when n < 90 then n else 9000000000000 end
    from generate_series(1, 30000) as n`.execute(db)
  await sql`
    insert into verification (id, account_id, key_id, email, valid, deliverable, risk_level, reason,
      class, cached, source, sandbox, created_at)
    select 'ver_' || n, 'acc_' || n % 20, 'key', 'user' || n || '@x.test', 1, 1, 'low', 'r', 'risky',
      0, 'batch', 0, n from generate_series(1, 60000) as n`.execute(db)
  await sql`
    insert into api_key (id, account_id, name, scopes, allowed_ips, allowed_domains, created_at)
    select 'key_' || n, 'acc_' || n, '', '["*"]', '[]', '[]', n
    from generate_series(1, 3000) as n`.execute(db)
  await sql`
    insert into key_secret (hash, key_id, prefix, hint, created_at)
    select 'hash ' || n, 'key_' || n, '', '', n from generate_series(1, 3000) as n`.execute(db)
  await sql`
    insert into session (id, hash, key_id, account_id, created_at, last_seen_at, expires_at, ip,
      agent)
    select 'ses_' || n, 'hash ' || n, 'key_' || n, 'acc_' || n, n, n, 1000000, '', ''
    from generate_series(1, 3000) as n`.execute(db)
  await sql`
    insert into account (id, name, plan, created_at)
    select 'acc_' || n, '', 'free', n from generate_series(1, 3000) as n`.execute(db)
  await sql`
    insert into person (id, account_id, name, email, role, created_at)
    select 'per_' || n, 'acc_' || n, '', 'user' || n || '@x.test', 'admin', n
    from generate_series(1, 3000) as n`.execute(db)
  await sql`
    insert into usage (account_id, key_id, day, class, verifications, cached, credits)
    select 'acc_' || n % 1000, 'key', n, 'risky', 1, 0, 1
    from generate_series(1, 20000) as n`.execute(db)
  await sql`
    insert into schedule (id, account_id, key_id, sandbox, job_id, latest_job_id, every_days, notify,
      next_run_at, created_at)
    select 'sch_' || n, 'acc_' || n, 'key', 0, 'job_' || n, 'job_' || n, 30, 0, n, n
    from generate_series(1, 3000) as n`.execute(db)
  await sql`analyze`.execute(db)
  return database
}
