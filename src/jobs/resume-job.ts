import { creditsExceededError } from '../accounts/credits/credit-store.ts'
import type { Plan } from '../accounts/plan.ts'
import { type BeforeCommit, type Trx, writeWith } from '../db/database.ts'
import { isRefusal, type OperationError } from '../platform/operation-error.ts'
import { jobError } from './errors.ts'
import { findJob, type Job } from './job-store.ts'
import { creditsToResume, isResumable, resumeJob as reopen } from './prepare-resume.ts'
import { checkPlanLimits, type JobServices } from './submit-job.ts'

type ResumeInput = {
  /** A job of an account. */
  readonly job: Job
  /** The plan of its account. */
  readonly plan: Plan
}

/**
 * Resumes a job that was cancelled or failed, with credits reserved for its remaining rows. Throws
 * `job_not_resumable`, `job_not_found`, `credits_exceeded` and `concurrent_jobs_exceeded`; the job
 * is unchanged then.
 */
export async function resumeJob(
  services: Pick<JobServices, 'database' | 'clock' | 'ledger' | 'worker' | 'metrics'>,
  { job, plan }: ResumeInput,
  beforeCommit?: BeforeCommit<Job>,
): Promise<Job> {
  const { database, clock, ledger, worker } = services
  if (!isResumable(job)) throw notResumable(job)
  const accountId = job.account_id ?? ''
  const { creditsPerDay } = plan
  const needed = await creditsToResume(database, job, creditsPerDay)
  const resume = async (trx: Trx) => {
    const now = clock.now()
    const resumed = await reopen(trx, job, { now, needed, creditsPerDay })
    if (resumed === null) throw await toChangedError(trx, job)
    if (!('job' in resumed))
      throw creditsExceededError(plan, now, { needed, left: resumed.creditsLeft })
    // Its rows already count as stored.
    const openLists = job.type === 'single' ? 0 : 1
    await checkPlanLimits(services, { accountId, plan }, { openLists, rows: 0 }, trx)
    return resumed.job
  }
  try {
    const resumed = await writeWith(database, resume, beforeCommit)
    worker?.take(job.id)
    return resumed
  } catch (error) {
    // Written after the failed transaction, which would have rolled the event back.
    if (isRefusal(error, 'credits_exceeded')) await ledger.refused(accountId, plan)
    throw error
  }
}

async function toChangedError(trx: Trx, { id }: Job): Promise<OperationError> {
  const job = await findJob({ db: trx }, id)
  return job === null ? jobError('job_not_found', { id }) : notResumable(job)
}

const notResumable = ({ id, state }: Job) => jobError('job_not_resumable', { id, state })
