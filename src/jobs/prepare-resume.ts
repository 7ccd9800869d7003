import { type Kysely, sql } from 'kysely'
import { creditsLeft, reserveCredits } from '../accounts/credits/credit-store.ts'
import { periodStart } from '../accounts/plan.ts'
import { inChunk, nextChunk } from '../db/chunked-scan.ts'
import type { Database, Trx } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { beginsWithNul } from '../db/sql-dialect.ts'
import { findJob, type Job } from './job-store.ts'
import type { ItemState } from './tables.ts'

/** Whether a job ended before all of its rows had a result. */
export const isResumable = ({ state }: Job) => state === 'cancelled' || state === 'failed'

/** Credits that a job needs to go on; null: it costs nothing, or its plan knows no limit. */
export async function creditsToResume(
  database: Database,
  job: Job,
  creditsPerDay: number | null,
): Promise<number | null> {
  return creditsPerDay === null || job.sandbox === 1 ? null : countUnasked(database, job)
}

/** How it was tried: `creditsLeft` are too few; null: meanwhile it is another state, or gone. */
export type Resumed = { readonly job: Job } | { readonly creditsLeft: number } | null

/**
 * Opens a job that was cancelled or failed, and sets the credits for its rest aside; call `take` of the worker when
 * that is durable. Where it is not opened, nothing is written.
 */
export async function resumeJob(
  trx: Trx,
  seen: Job,
  o: {
    readonly now: number
    /** By `creditsToResume`. */
    readonly needed: number | null
    readonly creditsPerDay: number | null
  },
): Promise<Resumed> {
  const job = await findJob({ db: trx }, seen.id)
  if (job === null || !isSame(job, seen)) return null
  const period = periodStart(o.now)
  const hold = o.needed === null || o.needed === 0 ? null : { amount: o.needed, period }
  const accountId = job.account_id ?? ''
  const limit = o.creditsPerDay
  if (hold !== null && !(await reserveCredits(trx, { accountId, ...hold, limit }))) {
    return { creditsLeft: await creditsLeft(trx, { accountId, period, limit: limit ?? 0 }) }
  }
  return { job: await reopenJob(trx, job, { now: o.now, hold }) }
}

/** It may have been resumed and have ended again. */
const isSame = (job: Job, seen: Job) =>
  isResumable(job) && job.finished_at === seen.finished_at && job.done === seen.done

/** Rows that are looked through in one go: some 3 ms. */
const CHUNK = 2_500

/**
 * How many addresses of a job that ended early have no result: what it would cost to go on with it, at most. Its rows
 * stand still, so nobody need wait while they are counted.
 */
export async function countUnasked(
  database: Database,
  { id, total }: Pick<Job, 'id' | 'total'>,
): Promise<number> {
  let count = 0
  const size = nextChunk(database, CHUNK)
  for (let after = 0; after < total; after += size) {
    const chunk = { jobId: id, after, to: after + size }
    count += await inChunk(database, () => unaskedIn(database.reader, chunk))
  }
  return count
}

/** Keys of what is no address begin with a NUL. Erased rows have no text. */
async function unaskedIn(
  db: Kysely<Schema>,
  { jobId, after, to }: { jobId: string; after: number; to: number },
): Promise<number> {
  const { count } = await db
    .selectFrom('item')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('job_id', '=', jobId)
    .where('position', '>', after)
    .where('position', '<=', to)
    .where('state', 'in', ['queued', 'routed', 'probing'])
    .where('text', '<>', '')
    .where(sql<boolean>`not ${beginsWithNul(db, sql`dedupe_key`)}`)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/**
 * Opens a job that was cancelled or failed: what has no result is asked as in any job that goes on after a stop. The
 * time that it stood still is none that it worked, or its end could not be foretold.
 */
export async function reopenJob(
  trx: Trx,
  { id, started_at, finished_at }: Job,
  o: { readonly now: number; readonly hold: { amount: number; period: number } | null },
): Promise<Job> {
  await queueErased(trx, id)
  const stoodMs = Math.max(0, o.now - (finished_at ?? o.now))
  return trx
    .updateTable('job')
    .set({
      ...{ state: started_at === null ? 'queued' : 'processing', error: null, finished_at: null },
      started_at: started_at === null ? null : started_at + stoodMs,
      ...{ held: o.hold?.amount ?? 0, credit_period: o.hold?.period ?? null },
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Rows whose address was erased (`ev purge`) are filed under nobody any more, so nobody would come to them. */
async function queueErased(trx: Trx, jobId: string): Promise<void> {
  for (const state of ['routed', 'probing'] as const) {
    await trx
      .updateTable('item')
      .set({ state: 'queued' })
      .where('job_id', '=', jobId)
      .where('state', '=', sql.lit<ItemState>(state))
      .where('operator', 'is', null)
      .execute()
  }
}
