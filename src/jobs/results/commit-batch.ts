import { lockAccounts } from '../../accounts/credits/reservations.ts'
import type { UsageLedger } from '../../accounts/credits/usage-ledger.ts'
import { type Database, type Trx, write, writeConcurrent } from '../../db/database.ts'
import { isFault } from '../../engine/address/address.ts'
import type { CachedAnswer } from '../../engine/result-cache.ts'
import { isFailure, type Result, toClass } from '../../engine/verdict/verdict.ts'
import type { Random } from '../../platform/random.ts'
import { putCachedAnswers } from '../cached-answers.ts'
import {
  type Fence,
  type Filed,
  fileItems,
  type Postponed,
  postponeItems,
  type Recorded,
  recordResults,
} from '../item-store.ts'
import { releaseReservation } from '../job-credits.ts'
import { emitJobEvent } from '../job-events.ts'
import { type Counts, countResults, failJob } from '../job-state.ts'
import { type Job, openJobIn } from '../job-store.ts'

/** What happened to items of a list. */
export type ItemUpdate = {
  readonly results?: readonly Outcome[]
  readonly filed?: readonly Filed[]
  readonly postponed?: readonly Omit<Postponed, 'fence'>[]
  /** The member of the cluster that claimed them; null: there is no cluster; left out: they were only being routed. */
  readonly holder?: string | null
}

export type Outcome = {
  readonly position: number
  /** Rows of the list that share the result, its own included. */
  readonly copies: number
  readonly result: Result
}

/** What is committed together. */
export type Content = {
  /** By job. */
  readonly changes: ReadonlyMap<string, readonly ItemUpdate[]>
  readonly answers: ReadonlyMap<string, CachedAnswer>
}

export type WriteDeps = {
  readonly database: Database
  /** Null: no accounts, so nothing of them is entered. */
  readonly ledger: UsageLedger | null
  readonly random: Random
  readonly baseUrl: string
}

export type Written = {
  /** The jobs as they stand now. */
  readonly jobs: readonly Job[]
  /** Jobs that take no more: they were cancelled or deleted meanwhile, or are finished. */
  readonly lost: readonly string[]
}

/**
 * Writes changes of any number of jobs in one transaction; a job that takes no more loses its own alone. Run again,
 * after it was not heard whether it was committed, it counts nothing twice: items that took their results take no more.
 */
export function commitBatch(deps: WriteDeps, content: Content): Promise<Written> {
  return writeConcurrent(deps.database, async trx => {
    const jobs: Job[] = []
    const lost: string[] = []
    // All jobs, then all accounts, each in the order of their IDs: so does everybody who writes at the same time.
    for (const jobId of [...content.changes.keys()].sort()) {
      const job = await openJobIn(trx, jobId)
      if (job === null) lost.push(jobId)
      else jobs.push(job)
    }
    await lockAccounts(
      trx,
      jobs.flatMap(job => job.account_id ?? []),
    )
    const after: Job[] = []
    for (const job of jobs) {
      after.push(await writeChanges(trx, deps, job, content.changes.get(job.id) ?? []))
    }
    if (content.answers.size > 0) await putCachedAnswers(trx, inOrder(content.answers))
    return { jobs: after, lost }
  })
}

const inOrder = <T>(answers: ReadonlyMap<string, T>) =>
  new Map([...answers].sort(([a], [b]) => (a < b ? -1 : 1)))

async function writeChanges(
  trx: Trx,
  deps: WriteDeps,
  job: Job,
  changes: readonly ItemUpdate[],
): Promise<Job> {
  const now = deps.database.clock.now()
  const filed = changes.flatMap(change => change.filed ?? [])
  await fileItems(trx, { jobId: job.id, filed, now })
  await postponeItems(trx, job.id, changes.flatMap(toPostponed))
  const results = changes.flatMap(change => change.results ?? [])
  const taken = await recordResults(trx, job.id, changes.flatMap(toRows))
  // Of two results of one item the first was taken and counts; and of what others have now none.
  const counted = results.filter((_, index) => taken[index])
  const counts = countsOf(counted, job.held)
  const after = await countResults(trx, job.id, counts, now)
  await enter(trx, deps, after, counted, counts.released)
  return after
}

const toPostponed = ({ postponed = [], ...change }: ItemUpdate): Postponed[] =>
  postponed.map(row => ({ ...row, ...fenceOf(change) }))

const toRows = ({ results = [], ...change }: ItemUpdate): Recorded[] =>
  results.map(({ position, result }) => ({
    ...{ position, result: JSON.stringify(result), class: toClass(result.verdict) },
    ...fenceOf(change),
  }))

/** What comes too late, because others have the item by now, is written nowhere and counts nothing. */
function fenceOf({ holder }: Pick<ItemUpdate, 'holder'>): { fence?: Fence } {
  if (holder === undefined) return { fence: { state: 'queued' } }
  return holder === null ? {} : { fence: { state: 'probing', holder } }
}

/** What a list of an account has to do with it: history, credits, and who is told that it is finished. */
async function enter(
  trx: Trx,
  { ledger, random, baseUrl, database }: WriteDeps,
  job: Job,
  counted: readonly Outcome[],
  released: number,
): Promise<void> {
  const { account_id: accountId, key_id: keyId } = job
  if (accountId === null || keyId === null) return
  const isSingle = job.type === 'single'
  const entries = counted.map(({ result }) => (isSingle ? { id: job.id, result } : { result }))
  const origin = { accountId, keyId, source: job.type, jobId: isSingle ? null : job.id }
  const credit = { period: job.credit_period, released }
  const sandbox = job.sandbox === 1
  if (entries.length > 0) await ledger?.record(trx, { ...origin, ...credit, sandbox, entries })
  if (job.finished_at === null) return
  await releaseReservation(trx, job)
  const last = isSingle ? counted.at(-1) : undefined
  const emitted = last === undefined ? {} : { result: last.result }
  await emitJobEvent(trx, job, { now: database.clock.now(), random, baseUrl, ...emitted })
}

/** Ends a job that cannot be finished through a fault of ours, and tells its account; null: it had ended. */
export function writeFailure(deps: WriteDeps, jobId: string): Promise<Job | null> {
  const { database, random, baseUrl } = deps
  const now = database.clock.now()
  return write(database, async trx => {
    if ((await openJobIn(trx, jobId)) === null) return null
    const job = await failJob(trx, jobId, 'server_error', now)
    await emitJobEvent(trx, job, { now, random, baseUrl })
    return job
  })
}

/** Rows of the list, so that a result shared by duplicates counts for each; credits were set aside for each address once. */
function countsOf(outcomes: readonly Outcome[], held: number): Required<Counts> {
  const counts = { deliverable: 0, risky: 0, undeliverable: 0, unknown: 0, failed: 0, released: 0 }
  for (const { copies, result } of outcomes) {
    counts[toClass(result.verdict)] += copies
    if (isFailure(result.verdict)) counts.failed += copies
    if (!isFault(result.evidence.address)) counts.released++
  }
  return { ...counts, released: Math.min(held, counts.released) }
}
