import { deleteJobHistory } from '../accounts/credits/history.ts'
import { type AuditServices, addAuditEntry } from '../audit.ts'
import { compact, type Database, secureDelete, writeConcurrent } from '../db/database.ts'
import { acquireLock, jobLock } from '../db/file-lock.ts'
import { deleteJob as deleteRows } from './delete-job.ts'
import { jobError } from './errors.ts'
import { accountJob } from './job-list.ts'
import { cancelJob as cancelRow, requestFinish } from './job-state.ts'
import { findJob, getListName, type Job } from './job-store.ts'
import type { JobWorker } from './worker/worker-deps.ts'

type ChangeServices = {
  readonly database: Database
  /** Left out if another process works on jobs; it notices the change within seconds. */
  readonly worker?: Pick<JobWorker, 'drop' | 'finish'>
}

/**
 * Returns a job of an account. Throws `job_not_found`, also for a job of another account and for
 * one that is still being submitted.
 */
export async function getJob(
  { database }: { readonly database: Database },
  { jobId: id, accountId }: { readonly jobId: string; readonly accountId: string },
): Promise<Job> {
  const job = await accountJob(database, accountId, id)
  if (job === null) throw jobError('job_not_found', { id })
  return job
}

type Cancelled = {
  readonly job: Job
  /** False if the job had been cancelled before. */
  readonly isChanged: boolean
}

/**
 * Cancels a job: it accepts no more results, and its reserved credits are released. Throws
 * `job_not_cancellable` if the job has completed or failed.
 */
export async function cancelJob(services: ChangeServices, job: Job): Promise<Cancelled> {
  const isChanged = await cancelIfOpen(services, job)
  const current = await reloadJob(services, job)
  if (current.state === 'cancelled') return { job: current, isChanged }
  throw jobError('job_not_cancellable', { id: job.id, state: current.state })
}

type FinishRequested = {
  readonly job: Job
  /** False if the job has completed, or if this was requested before. */
  readonly isChanged: boolean
}

/**
 * Finishes a job without further retries: rows that wait get their present result, rows in flight
 * end normally, and the job is completed as usual. Throws `job_not_finishable` if the job was
 * cancelled or has failed.
 */
export async function finishJob(
  services: ChangeServices & AuditServices,
  { id, account_id: accountId }: Job,
): Promise<FinishRequested> {
  const { database, clock, worker } = services
  const { job, isChanged } = await writeConcurrent(database, async trx => {
    const isChanged = await requestFinish(trx, id, clock.now())
    const job = await findJob({ db: trx }, id)
    if (job === null) throw jobError('job_not_found', { id })
    // A list of the command line belongs to no account.
    if (isChanged && accountId !== null) {
      const target = { id, name: getListName(job) }
      await addAuditEntry(trx, services, { action: 'job.finished', accountId, target })
    }
    return { job, isChanged }
  })
  if (job.state === 'cancelled' || job.state === 'failed') {
    throw jobError('job_not_finishable', { id, state: job.state })
  }
  if (isChanged) worker?.finish()
  return { job, isChanged }
}

type DeleteOptions = {
  /**
   * Overwrites the deleted data and returns its space to the disk. This locks the database, so a
   * process that serves requests leaves it out.
   */
  readonly isErased?: boolean
  /** Runs before another process can start with the same list. */
  readonly onDeleted?: () => Promise<void>
}

/**
 * Deletes a job with its rows and its part of the history; an unfinished job of an account is
 * cancelled first. Throws `job_in_use` while `ev bulk` processes a list of the command line.
 */
export async function deleteJob(
  services: ChangeServices & { readonly settings: { readonly dataDir: string } },
  job: Job,
  { isErased = false, onDeleted = async () => {} }: DeleteOptions = {},
): Promise<void> {
  const { database, settings } = services
  const lock =
    job.account_id === null
      ? acquireLock(...jobLock(database.file, settings.dataDir, job.source_key))
      : NO_LOCK
  if (lock === null) throw jobError('job_in_use', { id: job.id })
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

/** Lists of accounts need no file lock, because only the service works on them. */
const NO_LOCK = { release: () => {} }

/** Cancels the job first, so that nothing more is added to the history. */
async function deleteHistory(services: ChangeServices, job: Job): Promise<void> {
  await cancelIfOpen(services, job)
  await deleteJobHistory(services.database, await reloadJob(services, job))
}

/** Throws `job_not_found` if the job was deleted in the meantime. */
async function reloadJob({ database }: ChangeServices, { id }: Job): Promise<Job> {
  const job = await findJob(database, id)
  if (job === null) throw jobError('job_not_found', { id })
  return job
}

/** Returns false if the job has already ended. */
async function cancelIfOpen({ database, worker }: ChangeServices, { id }: Job): Promise<boolean> {
  const isEnded = await cancelRow(database, id)
  if (isEnded) worker?.drop(id)
  return isEnded
}
