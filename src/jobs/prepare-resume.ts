import { sql } from 'kysely'
import { creditsLeft, reserveCredits } from '../accounts/credits/credit-store.ts'
import { periodStart } from '../accounts/plan.ts'
import { countRows } from '../db/count-rows.ts'
import type { Database, Trx } from '../db/database.ts'
import { nextChunk, runChunk } from '../db/paging.ts'
import type { Reader } from '../db/reader.ts'
import { startsWithNul } from '../db/sql-dialect.ts'
import { isProbing } from './item-store.ts'
import { findJob, type Job } from './job-store.ts'

/** Returns true if a job ended before all of its rows had a result. */
export const isResumable = ({ state }: Job) => state === 'cancelled' || state === 'failed'

/**
 * Returns the credits needed to resume a job; null if it costs nothing or its plan has no limit.
 */
export async function creditsToResume(
  database: Database,
  job: Job,
  creditsPerDay: number | null,
): Promise<number | null> {
  return creditsPerDay === null || job.sandbox === 1 ? null : countUnverified(database, job)
}

/**
 * The resumed job, or `creditsLeft` if these are not enough; null if the job has changed in the
 * meantime or is gone.
 */
type Resumed = { readonly job: Job } | { readonly creditsLeft: number } | null

/**
 * Reopens a job that was cancelled or failed and reserves credits for its remaining rows; call
 * `take` of the worker after the commit. If the job is not reopened, nothing is written.
 */
export async function resumeJob(
  trx: Trx,
  seen: Job,
  o: {
    readonly now: number
    /** As returned by `creditsToResume`. */
    readonly needed: number | null
    readonly creditsPerDay: number | null
  },
): Promise<Resumed> {
  const job = await findJob({ db: trx }, seen.id)
  if (job === null || !isSame(job, seen)) return null
  const period = periodStart(o.now)
  const reservation = o.needed === null || o.needed === 0 ? null : { amount: o.needed, period }
  const accountId = job.account_id ?? ''
  const limit = o.creditsPerDay
  if (reservation !== null && !(await reserveCredits(trx, { accountId, ...reservation, limit }))) {
    return { creditsLeft: await creditsLeft(trx, { accountId, period, limit: limit ?? 0 }) }
  }
  return { job: await reopenJob(trx, job, { now: o.now, reservation }) }
}

/** Returns false if the job was resumed and has ended again since it was read. */
const isSame = (job: Job, seen: Job) =>
  isResumable(job) && job.finished_at === seen.finished_at && job.done === seen.done

/** Rows scanned per chunk: about 3 ms. */
const CHUNK = 2_500

/**
 * Counts the addresses without a result of a job that ended early: the maximum cost in credits of
 * resuming it. Its rows do not change, so they are counted without a lock.
 */
export async function countUnverified(
  database: Database,
  { id, total }: Pick<Job, 'id' | 'total'>,
): Promise<number> {
  let count = 0
  const size = nextChunk(database, CHUNK)
  for (let after = 0; after < total; after += size) {
    const chunk = { jobId: id, after, to: after + size }
    count += await runChunk(database, () => countUnverifiedIn(database.reader, chunk))
  }
  return count
}

/** Keys of rows that are not addresses start with NUL. Erased rows have no text. */
async function countUnverifiedIn(
  db: Reader,
  { jobId, after, to }: { jobId: string; after: number; to: number },
): Promise<number> {
  return countRows(
    db
      .selectFrom('item')
      .where('job_id', '=', jobId)
      .where('position', '>', after)
      .where('position', '<=', to)
      .where('state', 'in', ['queued', 'routed', 'probing'])
      .where('text', '<>', '')
      .where(sql<boolean>`not ${startsWithNul(db, sql`dedupe_key`)}`),
  )
}

/**
 * Reopens a job that was cancelled or failed; items without a result are probed as after a restart.
 * The time for which it was stopped does not count as working time, or its end could not be
 * estimated.
 */
export async function reopenJob(
  trx: Trx,
  { id, started_at, finished_at }: Job,
  o: { readonly now: number; readonly reservation: { amount: number; period: number } | null },
): Promise<Job> {
  await queueErased(trx, id)
  const stoppedMs = Math.max(0, o.now - (finished_at ?? o.now))
  return trx
    .updateTable('job')
    .set({
      state: started_at === null ? 'queued' : 'processing',
      error: null,
      finished_at: null,
      finish_requested_at: null,
      started_at: started_at === null ? null : started_at + stoppedMs,
      held: o.reservation?.amount ?? 0,
      credit_period: o.reservation?.period ?? null,
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/**
 * Queues rows whose address was erased (`ev purge`): they are routed to no operator, so they would
 * never be claimed.
 */
async function queueErased(trx: Trx, jobId: string): Promise<void> {
  for (const condition of [sql<boolean>`state = 'routed'`, isProbing(trx)]) {
    await trx
      .updateTable('item')
      .set({ state: 'queued' })
      .where('job_id', '=', jobId)
      .where(condition)
      .where('operator', 'is', null)
      .execute()
  }
}
