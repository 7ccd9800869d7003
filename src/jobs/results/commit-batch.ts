import { accountIn } from '../../accounts/account-store.ts'
import { lockAccounts } from '../../accounts/credits/credit-store.ts'
import type { LedgerBatch } from '../../accounts/credits/ledger-entries.ts'
import type { UsageLedger } from '../../accounts/credits/usage-ledger.ts'
import { type Database, type Trx, write, writeConcurrent } from '../../db/database.ts'
import { isFault } from '../../engine/address/address.ts'
import type { CachedAnswer } from '../../engine/result-cache.ts'
import { type ActionPolicy, DEFAULT_ACTION_POLICY } from '../../engine/verdict/action.ts'
import { encodeResult } from '../../engine/verdict/stored-result.ts'
import { isFailure, type Result, toClass } from '../../engine/verdict/verdict.ts'
import type { FeedbackKnowledge } from '../../feedback/knowledge.ts'
import type { Random } from '../../platform/random.ts'
import { putCachedAnswers } from '../cached-answers.ts'
import {
  type Fence,
  type ItemRoute,
  type Postponed,
  postponeItems,
  type Recorded,
  recordResults,
  storeRoutes,
} from '../item-store.ts'
import { releaseReservation } from '../job-credits.ts'
import { emitJobEvent } from '../job-events.ts'
import { type Counts, countResults, failJob } from '../job-state.ts'
import { getLockedOpenJob, getLockedOpenJobs, type Job } from '../job-store.ts'

/** Changes of items of one list. */
export type ItemUpdate = {
  readonly results?: readonly Outcome[]
  readonly routed?: readonly ItemRoute[]
  readonly postponed?: readonly Omit<Postponed, 'fence'>[]
  /**
   * The cluster member that claimed the items; null without a cluster; left out if they were not
   * claimed in the database. A postponed item that was not claimed there is also in `routed`.
   */
  readonly holder?: string | null
}

type Outcome = {
  readonly position: number
  /** Number of rows of the list that share the result, its own included. */
  readonly copies: number
  readonly result: Result
}

/** The content of one transaction. */
export type Content = {
  /** Item changes by job ID. */
  readonly changes: ReadonlyMap<string, readonly ItemUpdate[]>
  readonly answers: ReadonlyMap<string, CachedAnswer>
}

export type WriteDeps = {
  readonly database: Database
  /** Applies the feedback of accounts to results; null or omitted to ignore it. */
  readonly feedback?: FeedbackKnowledge | null
  /** Null without accounts; then no usage is entered. */
  readonly ledger: UsageLedger | null
  readonly random: Random
  readonly baseUrl: string
  /** Decides about actions for accounts without a policy; if left out, the balanced one. */
  readonly actionPolicy?: ActionPolicy
}

export type Written = {
  /** The jobs after the commit. */
  readonly jobs: readonly Job[]
  /**
   * IDs of jobs that accept no more changes: they were cancelled or deleted in the meantime, or are
   * finished.
   */
  readonly lost: readonly string[]
}

/**
 * Writes changes of any number of jobs in one transaction; a job that accepts no more changes loses
 * only its own. Repeated after a commit with unknown outcome, it counts nothing twice, because each
 * item accepts only one result.
 */
export function commitBatch(deps: WriteDeps, content: Content): Promise<Written> {
  return writeConcurrent(deps.database, async trx => {
    const ids = [...content.changes.keys()].sort()
    // Locks all jobs, then all accounts, each in the order of their IDs. All concurrent writers use
    // this order, which prevents deadlocks.
    const jobs = await getLockedOpenJobs(trx, ids)
    const open = new Set(jobs.map(({ id }) => id))
    const lost = ids.filter(id => !open.has(id))
    await lockAccounts(
      trx,
      jobs.flatMap(job => job.account_id ?? []),
    )
    const changes = await adjustChanges(trx, deps.feedback ?? null, jobs, content.changes)
    const after = await writeChanges(trx, deps, jobs, changes)
    if (content.answers.size > 0) await putCachedAnswers(trx, sortByKey(content.answers))
    return { jobs: after, lost }
  })
}

type Changes = Content['changes']

/** Applies feedback of accounts to the results of their jobs. */
async function adjustChanges(
  trx: Trx,
  feedback: FeedbackKnowledge | null,
  jobs: readonly Job[],
  changes: Changes,
): Promise<Changes> {
  if (feedback === null) return changes
  const adjusted = new Map(changes)
  const owned = Map.groupBy(
    jobs.filter(job => job.sandbox === 0),
    job => job.account_id ?? '',
  )
  for (const [accountId, ofAccount] of owned) {
    if (!(await feedback.isEnrolled(accountId))) continue
    const updates = ofAccount.flatMap(({ id }) => changes.get(id) ?? [])
    const outcomes = updates.flatMap(({ results = [] }) => results)
    const results = await feedback.adjust(
      trx,
      accountId,
      outcomes.map(({ result }) => result),
    )
    const byOutcome = new Map(outcomes.map((outcome, index) => [outcome, results[index]]))
    const replace = (outcome: Outcome) => ({
      ...outcome,
      result: byOutcome.get(outcome) ?? outcome.result,
    })
    for (const { id } of ofAccount) {
      const ofJob = (changes.get(id) ?? []).map(change =>
        change.results === undefined ? change : { ...change, results: change.results.map(replace) },
      )
      adjusted.set(id, ofJob)
    }
  }
  return adjusted
}

const sortByKey = <T>(answers: ReadonlyMap<string, T>) =>
  new Map([...answers].sort(([a], [b]) => (a < b ? -1 : 1)))

/** Writes the changes of jobs, of all jobs together where possible. Returns the jobs afterwards. */
async function writeChanges(
  trx: Trx,
  deps: WriteDeps,
  jobs: readonly Job[],
  changes: Changes,
): Promise<Job[]> {
  const { clock, steadyClock } = deps.database
  const rows: (Recorded & { readonly outcome: Outcome })[] = []
  for (const { id: jobId } of jobs) {
    const updates = changes.get(jobId) ?? []
    const routed = updates.flatMap(change => change.routed ?? [])
    await storeRoutes(trx, { jobId, routed, now: steadyClock.now() })
    await postponeItems(trx, jobId, updates.flatMap(toPostponed))
    for (const update of updates) rows.push(...toRows(jobId, update))
  }
  const written = await recordResults(trx, rows)
  // Of two results of one item, only the first is accepted and counts; results of items that other
  // members hold do not count.
  const accepted = rows.filter((_, index) => written[index])
  const rowsByJob = Map.groupBy(accepted, ({ jobId }) => jobId)
  const results = jobs.map(job => {
    const outcomes = (rowsByJob.get(job.id) ?? []).map(({ outcome }) => outcome)
    return { job, outcomes, counts: countOutcomes(outcomes, job.held) }
  })
  const counts = results
    .filter(({ job, outcomes }) => outcomes.length > 0 || job.done === job.total)
    .map(({ job, counts }) => [job.id, counts] as const)
  const counted = new Map(
    (await countResults(trx, new Map(counts), clock.now())).map(job => [job.id, job]),
  )
  const after = results.map(result => ({
    ...result,
    job: counted.get(result.job.id) ?? result.job,
  }))
  await enterUsage(trx, deps, after)
  return after.map(({ job }) => job)
}

const toPostponed = ({ postponed = [], ...change }: ItemUpdate): Postponed[] =>
  postponed.map(row => ({ ...row, ...toFence(change, 'routed') }))

function toRows(jobId: string, { results = [], ...change }: ItemUpdate) {
  const { fence } = toFence(change, 'queued')
  return results.map(outcome => ({
    jobId,
    position: outcome.position,
    outcome,
    result: encodeResult(outcome.result),
    class: toClass(outcome.result.verdict),
    fence,
  }))
}

/**
 * Returns the fence that discards late changes of items that other members hold by now. An item that
 * was not claimed must have a state.
 */
function toFence(
  { holder }: Pick<ItemUpdate, 'holder'>,
  state: 'queued' | 'routed',
): { fence?: Fence } {
  if (holder === undefined) return { fence: { state } }
  return holder === null ? {} : { fence: { state: 'probing', holder } }
}

type JobResults = {
  readonly job: Job
  readonly outcomes: readonly Outcome[]
  readonly counts: Required<Counts>
}

/**
 * Enters results of the jobs of accounts in the usage ledger, releases the reservations of jobs that
 * have finished and emits their events.
 */
async function enterUsage(
  trx: Trx,
  deps: WriteDeps,
  results: readonly JobResults[],
): Promise<void> {
  const { ledger, random, baseUrl, database } = deps
  await ledger?.record(trx, ...results.flatMap(toLedgerBatch))
  const [now, dueAt] = [database.clock.now(), database.steadyClock.now()]
  for (const { job, outcomes } of results) {
    if (job.account_id === null || job.key_id === null || job.finished_at === null) continue
    await releaseReservation(trx, job)
    const last = job.type === 'single' ? outcomes.at(-1) : undefined
    const policy = last === undefined ? null : await getActionPolicy(trx, deps, job.account_id)
    const emitted =
      last === undefined || policy === null ? {} : { verified: { result: last.result, policy } }
    await emitJobEvent(trx, job, { now, dueAt, random, baseUrl, ...emitted })
  }
}

async function getActionPolicy(
  trx: Trx,
  { actionPolicy = DEFAULT_ACTION_POLICY }: WriteDeps,
  accountId: string,
): Promise<ActionPolicy> {
  return (await accountIn(trx, accountId))?.action_policy ?? actionPolicy
}

/** Returns the ledger batch of a job; empty without an account or results. */
function toLedgerBatch({ job, outcomes, counts }: JobResults): LedgerBatch[] {
  const { account_id: accountId, key_id: keyId } = job
  if (accountId === null || keyId === null || outcomes.length === 0) return []
  const isSingle = job.type === 'single'
  const entries = outcomes.map(({ result }) => (isSingle ? { id: job.id, result } : { result }))
  return [
    {
      accountId,
      keyId,
      source: job.type,
      jobId: isSingle ? null : job.id,
      period: job.credit_period,
      released: counts.released,
      sandbox: job.sandbox === 1,
      entries,
    },
  ]
}

/**
 * Marks a job as failed after an internal failure and emits its event. Returns null if it had
 * already ended.
 */
export function writeFailure(deps: WriteDeps, jobId: string): Promise<Job | null> {
  const { database, random, baseUrl } = deps
  const [now, dueAt] = [database.clock.now(), database.steadyClock.now()]
  return write(database, async trx => {
    if ((await getLockedOpenJob(trx, jobId)) === null) return null
    const job = await failJob(trx, jobId, 'server_error', now)
    await emitJobEvent(trx, job, { now, dueAt, random, baseUrl })
    return job
  })
}

/**
 * Counts rows, so that a result shared by duplicates counts for each. `released` counts each
 * address once, as its credit was reserved once.
 */
function countOutcomes(outcomes: readonly Outcome[], held: number): Required<Counts> {
  const counts = { deliverable: 0, risky: 0, undeliverable: 0, unknown: 0, failed: 0, released: 0 }
  for (const { copies, result } of outcomes) {
    counts[toClass(result.verdict)] += copies
    if (isFailure(result.verdict)) counts.failed += copies
    if (!isFault(result.evidence.address)) counts.released++
  }
  return { ...counts, released: Math.min(held, counts.released) }
}
