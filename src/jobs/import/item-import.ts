import { sql, type Transaction } from 'kysely'
import { addStoredRows } from '../../accounts/account-store.ts'
import { type Database, type Trx, writeConcurrent } from '../../db/database.ts'
import type { Reader } from '../../db/reader.ts'
import type { Schema } from '../../db/schema.ts'
import { jsonRows, textAt } from '../../db/sql-dialect.ts'
import { encodeResult } from '../../engine/verdict/stored-result.ts'
import { type Class, isFailure, type Result, toClass } from '../../engine/verdict/verdict.ts'
import { HOUR } from '../../platform/clock.ts'
import { deleteJob } from '../delete-job.ts'
import { completeJob, refuseCancelled } from '../job-state.ts'
import { getLockedJob, type Job, type NewJob, newRow } from '../job-store.ts'
import type { ItemTable } from '../tables.ts'

export type NewItem = {
  readonly position: number
  readonly text: string
  readonly dedupeKey: string
  /** JSON of the data that came with the address and is returned with its result. */
  readonly cells?: string | null
  /** Position of the row that this row duplicates, if known before the list is queued. */
  readonly duplicateOf?: number | null
  /** The result that the row keeps; left out or null if it is to be verified. */
  readonly kept?: Result | null
}

/** Applies what is known about addresses to results, in the transaction that stores them. */
export type AdjustResults = (trx: Trx, results: readonly Result[]) => Promise<readonly Result[]>

export async function addItems(
  database: Database,
  jobId: string,
  items: readonly NewItem[],
  adjust: AdjustResults = async (_, results) => results,
): Promise<void> {
  await writeConcurrent(database, async trx => {
    const kept = await adjustKept(trx, items, adjust)
    const rows = items.map(({ position, text, dedupeKey, cells = null, duplicateOf = null }) => {
      const result = kept.get(position)
      return [
        ...[position, text, shortenKey(dedupeKey, text), cells, duplicateOf],
        result === undefined ? null : encodeResult(result),
        result === undefined ? null : toClass(result.verdict),
      ]
    })
    await sql`
      insert into item (job_id, position, text, dedupe_key, cells, state, same_as, copies, due_at,
        tries, result, class)
      select cast(${jobId} as text), cast(value ->> 0 as bigint), value ->> 1, value ->> 2,
        value ->> 3, case when value ->> 4 is not null then 'same'
          when value ->> 5 is not null then 'done' else 'queued' end,
        cast(value ->> 4 as bigint), case when value ->> 4 is null then 1 else 0 end, 0, 0,
        value ->> 5, value ->> 6
      from ${jsonRows(trx, rows)}`.execute(trx)
  })
}

/** Returns the results that rows keep, by position. */
async function adjustKept(
  trx: Trx,
  items: readonly NewItem[],
  adjust: AdjustResults,
): Promise<ReadonlyMap<number, Result>> {
  const kept = items.flatMap(({ position, kept: result }) =>
    result == null ? [] : [{ position, result }],
  )
  if (kept.length === 0) return new Map()
  const adjusted = await adjust(
    trx,
    kept.map(({ result }) => result),
  )
  return new Map(kept.map(({ position, result }, n) => [position, adjusted[n] ?? result]))
}

/** Returns the key to store: most addresses are their own key. See `ItemTable.dedupe_key`. */
const shortenKey = (dedupeKey: string, text: string) => (dedupeKey === text ? '' : dedupeKey)

/** A row that occurs more than once in its list, and the number of occurrences. */
export type Repeated = { readonly position: number; readonly copies: number }

/**
 * Stores the number of copies of rows, which are in list order. Scans the rows between the first
 * and the last of them.
 */
export async function markCopies(
  database: Database,
  jobId: string,
  repeated: readonly Repeated[],
): Promise<void> {
  const [first, last] = [repeated[0]?.position ?? 0, repeated.at(-1)?.position ?? 0]
  await writeConcurrent(database, trx =>
    // Values read from JSON have no index: SQLite builds one only for a materialized CTE.
    sql`
      with counts(position, copies) as materialized (
        select cast(value ->> 'position' as bigint), cast(value ->> 'copies' as bigint)
        from ${jsonRows(trx, repeated)})
      update item set copies = counts.copies from counts
      where item.job_id = ${jobId} and item.position between ${first} and ${last}
        and item.position = counts.position`.execute(trx),
  )
}

type KeptGroup = { readonly class: Class; readonly rows: number; readonly failed: number }

/** Counts the results of a range of positions, over all rows of the list, with duplicates. */
export async function countKeptIn(
  trx: Reader,
  { jobId, after, end }: { readonly jobId: string; readonly after: number; readonly end: number },
): Promise<KeptCounts> {
  const isFailure = sql`class = 'unknown'
    and ${textAt(trx, sql`result`, ['verdict', 'reason'])} = 'unexpected_error'`
  const { rows } = await sql<KeptGroup>`
    select class, sum(copies) as rows, sum(case when ${isFailure} then copies else 0 end) as failed
    from item where job_id = ${jobId} and position > ${after} and position <= ${end}
      and state = 'done'
    group by class`.execute(trx)
  const kept = { ...NONE_KEPT }
  for (const { class: klass, rows: count, failed } of rows) {
    kept[klass] += Number(count)
    kept.failed += Number(failed)
  }
  return kept
}

export const addKept = (one: KeptCounts, other: KeptCounts): KeptCounts => ({
  deliverable: one.deliverable + other.deliverable,
  risky: one.risky + other.risky,
  undeliverable: one.undeliverable + other.undeliverable,
  unknown: one.unknown + other.unknown,
  failed: one.failed + other.failed,
})

export const countDone = ({ deliverable, risky, undeliverable, unknown }: KeptCounts): number =>
  deliverable + risky + undeliverable + unknown

/** Queues a job that has all its items; one whose rows all keep a result is completed at once. */
export function queueJob(
  database: Database,
  jobId: string,
  options: Omit<QueueOptions, 'now'>,
): Promise<Job> {
  return writeConcurrent(database, trx =>
    queueJobIn(trx, jobId, { now: database.clock.now(), ...options }),
  )
}

type QueueOptions = {
  /** Epoch ms. */
  readonly now: number
  /** Numbers of rows, and of those that duplicate an earlier one. */
  readonly counted: { readonly total: number; readonly duplicates: number }
  /** Number of rows that are malformed addresses. */
  readonly malformed?: number
  /** Number of rows without an address. */
  readonly noAddress?: number
  /** Counts of the rows that already have a result. */
  readonly kept?: KeptCounts | undefined
  /** Credits reserved for the job, and the start of their period; null if there are none. */
  readonly reservation?: { readonly amount: number; readonly period: number } | null
}

/** Counts of results by class; `failed` are internal failures, which are part of `unknown`. */
export type KeptCounts = Record<Class | 'failed', number>

export const NONE_KEPT: KeptCounts = {
  deliverable: 0,
  risky: 0,
  undeliverable: 0,
  unknown: 0,
  failed: 0,
}

/** Like `queueJob`, in a transaction of the caller. */
export async function queueJobIn(
  trx: Transaction<Schema>,
  jobId: string,
  {
    now,
    counted,
    malformed = 0,
    noAddress = 0,
    kept = NONE_KEPT,
    reservation = null,
  }: QueueOptions,
): Promise<Job> {
  refuseCancelled(await getLockedJob(trx, jobId))
  const { total, duplicates } = counted
  const reserved =
    reservation === null ? {} : { held: reservation.amount, credit_period: reservation.period }
  const done = countDone(kept)
  const job = await trx
    .updateTable('job')
    .set({
      state: 'queued',
      total,
      duplicates,
      malformed,
      no_address: noAddress,
      done,
      ...kept,
      ...reserved,
    })
    .where('id', '=', jobId)
    .returningAll()
    .executeTakeFirstOrThrow()
  await addStoredRows(trx, job)
  return done === total ? completeJob(trx, jobId, now) : job
}

type FinishedItem = NewItem & { readonly result: Result }

/** Inserts a job together with all its results, for a short list that was answered directly. */
export async function insertFinishedJob(
  trx: Transaction<Schema>,
  job: NewJob,
  items: readonly FinishedItem[],
  now: number,
): Promise<Job> {
  const results = items.map(({ result }) => result)
  const row: Job = {
    ...newRow(job, now),
    state: 'completed',
    started_at: now,
    finished_at: now,
    total: items.length,
    done: items.length,
    ...countClasses(results),
    malformed: results.filter(({ verdict }) => verdict.reason === 'invalid_email').length,
    no_address: results.filter(({ verdict }) => verdict.reason === 'no_address').length,
    failed: results.filter(({ verdict }) => isFailure(verdict)).length,
  }
  await trx.insertInto('job').values(row).execute()
  if (items.length > 0)
    await trx
      .insertInto('item')
      .values(items.map(finished(job.id)))
      .execute()
  await addStoredRows(trx, row)
  return row
}

const finished =
  (jobId: string) =>
  ({ position, text, dedupeKey, cells = null, result }: FinishedItem): ItemTable => ({
    job_id: jobId,
    position,
    text,
    cells,
    dedupe_key: shortenKey(dedupeKey, text),
    state: 'done',
    result: encodeResult(result),
    class: toClass(result.verdict),
    same_as: null,
    copies: 1,
    operator: null,
    domain: null,
    route: null,
    due_at: 0,
    egress: null,
    refused_by: null,
    accepted: null,
    latest_result: null,
    tries: 0,
    ready_at: null,
    holder: null,
    previous: null,
  })

function countClasses(results: readonly Result[]): Record<Class, number> {
  const counts = { deliverable: 0, risky: 0, undeliverable: 0, unknown: 0 }
  for (const { verdict } of results) counts[toClass(verdict)]++
  return counts
}

/** A list that has been loading for longer than this will never be complete. */
const LOADING_MS_MAX = HOUR

/**
 * Deletes jobs of accounts that were never queued, because the process that loaded them crashed
 * before their accounts saw them. With `before`, epoch ms, deletes only jobs created before it, as
 * others may still be loading: a full disk prevents both storing and deleting a list. On
 * PostgreSQL, other processes may be loading at any time. Returns the number of deleted jobs.
 */
export async function deleteLoadingJobs(
  database: Database,
  before = database.dialect === 'postgres'
    ? database.clock.now() - LOADING_MS_MAX
    : Number.MAX_SAFE_INTEGER,
): Promise<number> {
  const loading = await database.db
    .selectFrom('job')
    .select('id')
    .where('state', '=', 'loading')
    .where('account_id', 'is not', null)
    .where('created_at', '<', before)
    .execute()
  let deleted = 0
  for (const { id } of loading) {
    // The job may have been queued since.
    if (await deleteJob(database, id, job => job.state === 'loading')) deleted++
  }
  return deleted
}
