import { sql, type Transaction } from 'kysely'
import { type Database, type Trx, writeConcurrent } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { isPostgres, typedRows } from '../db/sql-dialect.ts'
import type { Class } from '../engine/verdict/verdict.ts'
import { EvError } from '../platform/error.ts'
import { isProbing, RELEASED } from './item-store.ts'
import { releaseReservation } from './job-credits.ts'
import { getLockedJob, type Job } from './job-store.ts'

// The states of a job:
//
// | state        | event                                        | next state                |
// | ------------ | -------------------------------------------- | ------------------------- |
// |              | its list is being stored                     | `loading`                 |
// |              | a short list was answered in its request     | `completed`               |
// | `loading`    | all rows are stored                          | `queued`                  |
// | `queued`     | a worker takes it                            | `processing`              |
// | `processing` | the result of its last row is stored         | `completed`               |
// | open         | it is cancelled                              | `cancelled`               |
// | open         | repeated internal failures                   | `failed`                  |
// | `cancelled`  | it is resumed                                | `queued` or `processing`  |
// | `failed`     | it is resumed                                | `queued` or `processing`  |
// | any          | an account deletes it; its rows go in steps  | `loading`, and then none  |
//
// Open are `loading`, `queued` and `processing`; finished are `completed`, `failed` and `cancelled`.
// A list without rows to verify is completed as soon as it is queued. A job that was resumed is
// `processing` if it had been started before. A request to finish (`ev jobs finish`) is not a
// state: rows that wait get their present results, and the job is completed with the last one.

/**
 * Starts a job, for the first time or after a stop. Items that were in flight are probed again,
 * except those claimed by a live cluster member.
 */
export async function startJob(database: Database, jobId: string): Promise<Job> {
  return writeConcurrent(database, async trx => {
    refuseCancelled(await getLockedJob(trx, jobId))
    await requeue(trx, jobId)
    await trx
      .updateTable('job')
      .set({ state: 'processing', started_at: database.clock.now() })
      .where('id', '=', jobId)
      .where('state', '=', 'queued')
      .execute()
    return getLockedJob(trx, jobId)
  })
}

async function requeue(trx: Transaction<Schema>, jobId: string): Promise<void> {
  const inFlight = trx
    .updateTable('item')
    .set({ state: RELEASED })
    .where('job_id', '=', jobId)
    .where(isProbing(trx))
  // On SQLite there are no members, and each column set costs an index lookup.
  const unclaimed = isPostgres(trx)
    ? inFlight
        .set({ holder: null })
        .where(({ not, exists, selectFrom }) =>
          not(exists(selectFrom('member').select('id').whereRef('member.id', '=', 'item.holder'))),
        )
    : inFlight
  await unclaimed.execute()
}

export type Counts = Readonly<Record<Class, number>> & {
  /** Results of internal failures, which are part of `unknown`. */
  readonly failed?: number
  /** Reserved credits that these results release. */
  readonly released?: number
}

/**
 * Adds results to the counts of their jobs, by ID, and completes each job with its last result; call
 * it in the transaction that writes them. Returns the jobs. Throws if a job was cancelled in the
 * meantime, so that nothing is written.
 */
export async function countResults(
  trx: Transaction<Schema>,
  counts: ReadonlyMap<string, Counts>,
  now: number,
): Promise<Job[]> {
  const jobs = isPostgres(trx) ? await addAllCounts(trx, counts) : await addCounts(trx, counts)
  for (const id of counts.keys()) if (!jobs.some(job => job.id === id)) await throwRefusal(trx, id)
  const after: Job[] = []
  for (const job of jobs) {
    after.push(job.done === job.total ? await completeJob(trx, job.id, now) : job)
  }
  return after
}

const COUNTS =
  'deliverable bigint, risky bigint, undeliverable bigint, unknown bigint, failed bigint'

/** On PostgreSQL each statement is a round trip, so one statement counts for all jobs. */
async function addAllCounts(
  trx: Transaction<Schema>,
  counts: ReadonlyMap<string, Counts>,
): Promise<Job[]> {
  if (counts.size === 0) return []
  const rows = [...counts].map(([id, count]) => ({ id, failed: 0, released: 0, ...count }))
  const { rows: jobs } = await sql<Job>`
    update job set
      done = done + each.deliverable + each.risky + each.undeliverable + each.unknown,
      deliverable = job.deliverable + each.deliverable, risky = job.risky + each.risky,
      undeliverable = job.undeliverable + each.undeliverable, unknown = job.unknown + each.unknown,
      failed = job.failed + each.failed, held = held - each.released
    from ${typedRows(rows, `id text, ${COUNTS}, released bigint`)}
    where job.id = each.id and state <> 'cancelled'
    returning job.*`.execute(trx)
  return jobs
}

async function addCounts(
  trx: Transaction<Schema>,
  counts: ReadonlyMap<string, Counts>,
): Promise<Job[]> {
  const jobs: Job[] = []
  for (const [id, count] of counts) {
    const job = await addCount(trx, id, count)
    if (job !== undefined) jobs.push(job)
  }
  return jobs
}

function addCount(trx: Transaction<Schema>, jobId: string, counts: Counts) {
  const { failed = 0, released = 0 } = counts
  const added = counts.deliverable + counts.risky + counts.undeliverable + counts.unknown
  return trx
    .updateTable('job')
    .set(eb => ({
      done: eb('done', '+', added),
      deliverable: eb('deliverable', '+', counts.deliverable),
      risky: eb('risky', '+', counts.risky),
      undeliverable: eb('undeliverable', '+', counts.undeliverable),
      unknown: eb('unknown', '+', counts.unknown),
      failed: eb('failed', '+', failed),
      held: eb('held', '-', released),
    }))
    .where('id', '=', jobId)
    .where('state', '<>', 'cancelled')
    .returningAll()
    .executeTakeFirst()
}

/** Throws the reason why nothing was counted: the job was cancelled or does not exist. */
async function throwRefusal(trx: Transaction<Schema>, jobId: string): Promise<never> {
  refuseCancelled(await getLockedJob(trx, jobId))
  throw new Error(`job ${jobId} accepts no results`)
}

/** Marks a job as completed. */
export function completeJob(trx: Transaction<Schema>, jobId: string, now: number): Promise<Job> {
  return trx
    .updateTable('job')
    .set({ state: 'completed', finished_at: now })
    .where('id', '=', jobId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Marks a job as failed; `code` is the error that its submitter sees. */
export async function failJob(
  trx: Transaction<Schema>,
  jobId: string,
  code: string,
  now: number,
): Promise<Job> {
  await getLockedJob(trx, jobId)
  await releaseReservation(trx, { id: jobId })
  return trx
    .updateTable('job')
    .set({ state: 'failed', error: code, finished_at: now })
    .where('id', '=', jobId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/**
 * Cancels an unfinished job: it accepts no more results, and the same list becomes a new job. A
 * process that works on the job gets an error at its next commit. Returns false if the job was
 * already finished.
 */
export async function cancelJob(database: Database, jobId: string): Promise<boolean> {
  const cancelled = { state: 'cancelled', finished_at: database.clock.now() } as const
  return writeConcurrent(database, async trx => {
    const { numUpdatedRows } = await trx
      .updateTable('job')
      .set(cancelled)
      .where('id', '=', jobId)
      .where('finished_at', 'is', null)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) return false
    await releaseReservation(trx, { id: jobId })
    return true
  })
}

/**
 * Records that an open job is to end without further retries. Returns false if it has ended, or if
 * this was requested before.
 */
export async function requestFinish(trx: Trx, jobId: string, now: number): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('job')
    .set({ finish_requested_at: now })
    .where('id', '=', jobId)
    .where('finished_at', 'is', null)
    .where('finish_requested_at', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

/** Lists the open jobs that are to end without further retries. */
export async function listJobsToFinish({ reader }: Database): Promise<string[]> {
  // Written literally, so that the partial index is used.
  const { rows } = await sql<{ id: string }>`
    select id from job where finish_requested_at is not null and finished_at is null`.execute(
    reader,
  )
  return rows.map(({ id }) => id)
}

/** Whether an error is that of `refuseCancelled`. */
export const isCancelled = (error: unknown): boolean =>
  error instanceof EvError && error.code === 'interrupted'

/** Throws EvError `interrupted` if the job was cancelled, so that work on it ends. */
export function refuseCancelled({ id, state, done, total }: Job): void {
  if (state !== 'cancelled') return
  throw new EvError(
    'interrupted',
    `The list was cancelled with "ev jobs cancel ${id}" after ${done} of ${total} rows. Run the same command to start over.`,
  )
}
