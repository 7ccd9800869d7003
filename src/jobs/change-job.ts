import { deleteHistoryOf } from '../accounts/credits/history.ts'
import { compact, type Database, secureDelete } from '../db/database.ts'
import { acquireLock, jobLockName } from '../db/file-lock.ts'
import { OperationError } from '../platform/operation-error.ts'
import { deleteJob as deleteRows } from './delete-job.ts'
import { accountJob } from './job-list.ts'
import { cancelJob as cancelRow } from './job-state.ts'
import { findJob, type Job } from './job-store.ts'
import type { JobWorker } from './worker/start-worker.ts'

export type ChangeServices = {
  readonly database: Database
  /** Left out: another process works on jobs, and notices within seconds. */
  readonly worker?: Pick<JobWorker, 'drop'>
}

/** A job of an account. Throws `job_not_found`, also for one of another account or one that is being submitted. */
export async function getJob(
  { database }: { readonly database: Database },
  { jobId: id, accountId }: { readonly jobId: string; readonly accountId: string },
): Promise<Job> {
  const job = await accountJob(database, accountId, id)
  if (job === null) throw new OperationError('job_not_found', { id })
  return job
}

export type Cancelled = {
  readonly job: Job
  /** False: it was cancelled before. */
  readonly isChanged: boolean
}

/** Cancels a job: it takes no more results, and its credits go back. Throws `job_not_cancellable` where it has ended otherwise. */
export async function cancelJob(services: ChangeServices, job: Job): Promise<Cancelled> {
  const isChanged = await end(services, job)
  const now = await readAgain(services, job)
  if (now.state === 'cancelled') return { job: now, isChanged }
  throw new OperationError('job_not_cancellable', { id: job.id, state: now.state })
}

export type DeleteOptions = {
  /**
   * Overwrites what is deleted and gives its room back to the disk. Nobody else can use the database meanwhile, so a
   * process that serves others leaves it out.
   */
  readonly isErased?: boolean
  /** Runs before others can start with the same list. */
  readonly onDeleted?: () => Promise<void>
}

/**
 * Deletes a job with its rows and its part of the history; one of an account that is not finished is cancelled first.
 * Throws `job_in_use` where `ev bulk` is at work on a list of the command line.
 */
export async function deleteJob(
  services: ChangeServices & { readonly settings: { readonly dataDir: string } },
  job: Job,
  { isErased = false, onDeleted = async () => {} }: DeleteOptions = {},
): Promise<void> {
  const { database, settings } = services
  const lock =
    job.account_id === null ? acquireLock(settings.dataDir, jobLockName(job.source_key)) : NONE
  if (lock === null) throw new OperationError('job_in_use', { id: job.id })
  try {
    if (isErased) await secureDelete(database)
    if (job.account_id !== null) await deleteHistory(services, job)
    await deleteRows(database, job.id)
    await onDeleted()
  } finally {
    lock.release()
  }
  if (isErased) await compact(database)
}

/** The service alone works on a list of an account. */
const NONE = { release: () => {} }

/** Cancelled first, so that nothing is added to the history any more. */
async function deleteHistory(services: ChangeServices, job: Job): Promise<void> {
  await end(services, job)
  await deleteHistoryOf(services.database, await readAgain(services, job))
}

/** Others may have deleted it meanwhile. */
async function readAgain({ database }: ChangeServices, { id }: Job): Promise<Job> {
  const job = await findJob(database, id)
  if (job === null) throw new OperationError('job_not_found', { id })
  return job
}

/** False: it has ended already. */
async function end({ database, worker }: ChangeServices, { id }: Job): Promise<boolean> {
  const isEnded = await cancelRow(database, id)
  if (isEnded) worker?.drop(id)
  return isEnded
}
