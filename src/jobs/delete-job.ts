import type { ExpressionBuilder } from 'kysely'
import { subtractStoredRows } from '../accounts/account-store.ts'
import { type Database, type Trx, writeConcurrent } from '../db/database.ts'
import { acquireLock, jobLock } from '../db/file-lock.ts'
import type { Schema } from '../db/schema.ts'
import { yieldToEventLoop } from '../platform/clock.ts'
import { deleteJobWebhook } from '../webhooks/endpoint-store.ts'
import { releaseReservation } from './job-credits.ts'
import { findLockedJob, type Job, parseWebhookId } from './job-store.ts'
import { pauseSchedulesOf } from './schedules/schedule-store.ts'

/**
 * Lists the jobs that were finished (completed, cancelled or failed) before `before`, epoch ms;
 * those of the sandbox also if before `sandboxBefore`. Leaves out those that an
 * active schedule will verify again, unless `withScheduled`.
 */
export function jobsFinishedBefore(
  { db }: Database,
  before: number,
  sandboxBefore = before,
  withScheduled = false,
): Promise<Job[]> {
  const jobs = db.selectFrom('job').selectAll()
  const deletable = withScheduled ? jobs : jobs.where(isUnscheduled)
  return deletable
    .where(({ eb, or, and }) =>
      or([
        eb('finished_at', '<', before),
        and([eb('sandbox', '=', 1), eb('finished_at', '<', sandboxBefore)]),
      ]),
    )
    .orderBy('created_at')
    .execute()
}

const isUnscheduled = ({ not, exists, selectFrom }: ExpressionBuilder<Schema, 'job'>) =>
  not(
    exists(
      selectFrom('schedule')
        .select('id')
        .whereRef('latest_job_id', '=', 'job.id')
        .where('next_run_at', 'is not', null),
    ),
  )

/**
 * Deletes the jobs of `jobsFinishedBefore`, except those that a process works on. Returns the
 * deleted jobs; if several processes delete the same job, only one of them returns it.
 */
export async function deleteJobsBefore(
  database: Database,
  dataDir: string,
  before: number,
  sandboxBefore = before,
  withScheduled = false,
): Promise<Job[]> {
  const latest = Math.max(before, sandboxBefore)
  const isOld = ({ finished_at, sandbox }: Job) =>
    finished_at !== null && finished_at < (sandbox === 1 ? latest : before)
  const deleted: Job[] = []
  const jobs = await jobsFinishedBefore(database, before, sandboxBefore, withScheduled)
  for (const job of jobs) {
    const remove = () => deleteJob(database, job.id, isOld)
    if (await unlessLocked(database, dataDir, job, remove)) deleted.push(job)
  }
  return deleted
}

/**
 * Skips a locked job: a process that shares the database file may be about to write the output of a
 * finished list of the command line.
 */
async function unlessLocked(
  { dialect, file }: Database,
  dataDir: string,
  job: Job,
  remove: () => Promise<boolean>,
): Promise<boolean> {
  if (dialect === 'postgres') return remove()
  const lock = acquireLock(...jobLock(file, dataDir, job.source_key))
  if (lock === null) return false
  try {
    return await remove()
  } finally {
    lock.release()
  }
}

/** Rows deleted per transaction, which blocks other readers and writers. */
const ROWS_MAX = 2_000

/**
 * Deletes a job with all its items and its webhook, and releases its credit reservation. The job is
 * hidden from its account at once, and its items are deleted page by page; the remainder after a
 * crash is deleted like a job that was never queued. Returns false if there is no such job or
 * `isSelected` rejects it. Concurrent calls share the work.
 */
export async function deleteJob(
  database: Database,
  jobId: string,
  isSelected: (job: Job) => boolean = () => true,
): Promise<boolean> {
  if (
    !(await writeConcurrent(database, trx => hideJob(trx, jobId, isSelected, database.clock.now())))
  )
    return false
  while ((await writeConcurrent(database, trx => deleteItems(trx, jobId))) === ROWS_MAX)
    await yieldToEventLoop()
  await writeConcurrent(database, trx => trx.deleteFrom('job').where('id', '=', jobId).execute())
  return true
}

/**
 * A list of the command line keeps its state: in state `loading`, the same list would be loaded
 * into it again.
 */
async function hideJob(
  trx: Trx,
  jobId: string,
  isSelected: (job: Job) => boolean,
  now: number,
): Promise<boolean> {
  const job = await findLockedJob(trx, jobId)
  if (job === null || !isSelected(job)) return false
  await releaseReservation(trx, { id: jobId })
  await trx
    .updateTable('job')
    .set({ state: 'loading', finished_at: null })
    .where('id', '=', jobId)
    .where('account_id', 'is not', null)
    .execute()
  await pauseSchedulesOf(trx, jobId)
  if (job.account_id !== null && parseWebhookId(job) !== null) {
    await deleteJobWebhook(trx, { accountId: job.account_id, jobId, now })
  }
  // Rows of a job that was never queued were never counted.
  if (job.state !== 'loading') await subtractStoredRows(trx, job)
  return true
}

async function deleteItems(trx: Trx, jobId: string): Promise<number> {
  // The lock serializes concurrent deletions: if pages overlapped, a short page would not be the
  // last.
  await findLockedJob(trx, jobId)
  const { numDeletedRows } = await trx
    .deleteFrom('item')
    .where('job_id', '=', jobId)
    .where('position', 'in', query =>
      query.selectFrom('item').select('position').where('job_id', '=', jobId).limit(ROWS_MAX),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
