import { creditsLeft, reserveCredits } from '../accounts/credits/credit-store.ts'
import { periodStart } from '../accounts/plan.ts'
import type { Database, Trx } from '../db/database.ts'
import { findJob, type Job } from './job-store.ts'
import { countUnasked, reopenJob } from './reopen-job.ts'

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
