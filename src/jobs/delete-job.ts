import { subtractStoredRows } from '../accounts/credits/stored-rows.ts'
import { type Database, type Trx, writeConcurrent } from '../db/database.ts'
import { acquireLock, jobLockName } from '../db/file-lock.ts'
import { yieldToEventLoop } from '../platform/clock.ts'
import { releaseReservation } from './job-credits.ts'
import { type Job, lockedJob } from './job-store.ts'

/**
 * The jobs that were finished before a time, epoch ms: completed, cancelled or failed; those of the sandbox before a time
 * of their own.
 */
export function jobsFinishedBefore(
  { db }: Database,
  before: number,
  sandboxBefore = before,
): Promise<Job[]> {
  return db
    .selectFrom('job')
    .selectAll()
    .where(({ eb, or, and }) =>
      or([
        eb('finished_at', '<', before),
        and([eb('sandbox', '=', 1), eb('finished_at', '<', sandboxBefore)]),
      ]),
    )
    .orderBy('created_at')
    .execute()
}

/**
 * Removes the jobs of `jobsFinishedBefore`, but for those that a process works on. Gives the removed: of several that
 * remove the same job one.
 */
export async function deleteJobsBefore(
  database: Database,
  dataDir: string,
  before: number,
  sandboxBefore = before,
): Promise<Job[]> {
  const latest = Math.max(before, sandboxBefore)
  const isOld = ({ finished_at, sandbox }: Job) =>
    finished_at !== null && finished_at < (sandbox === 1 ? latest : before)
  const deleted: Job[] = []
  for (const job of await jobsFinishedBefore(database, before, sandboxBefore)) {
    const remove = () => deleteJob(database, job.id, isOld)
    if (await unlessLocked(database, dataDir, job, remove)) deleted.push(job)
  }
  return deleted
}

/** A list of the command line that is finished may be about to be written, by a process that shares its file. */
async function unlessLocked(
  { dialect }: Database,
  dataDir: string,
  job: Job,
  remove: () => Promise<boolean>,
): Promise<boolean> {
  if (dialect === 'postgres') return remove()
  const lock = acquireLock(dataDir, jobLockName(job.source_key))
  if (lock === null) return false
  try {
    return await remove()
  } finally {
    lock.release()
  }
}

/** Rows removed in one go: nobody else reads or writes meanwhile. */
const ROWS_MAX = 2_000

/**
 * Removes a job with all its items; what it still holds of its account's credits goes back. It is gone for its account
 * at once, and its items go page by page: what a crash leaves of it is removed as what never came to be queued is. With
 * `isMeant`, only as long as it is one of those. Gives whether it went; two that remove it at once do it together.
 */
export async function deleteJob(
  database: Database,
  jobId: string,
  isSelected: (job: Job) => boolean = () => true,
): Promise<boolean> {
  if (!(await writeConcurrent(database, trx => hideJob(trx, jobId, isSelected)))) return false
  while ((await writeConcurrent(database, trx => deleteItems(trx, jobId))) === ROWS_MAX)
    await yieldToEventLoop()
  await writeConcurrent(database, trx => trx.deleteFrom('job').where('id', '=', jobId).execute())
  return true
}

/** A list of the command line stays as it is: were it loading, the same list would begin anew by it. */
async function hideJob(
  trx: Trx,
  jobId: string,
  isSelected: (job: Job) => boolean,
): Promise<boolean> {
  const job = await lockedJob(trx, jobId)
  if (job === null || !isSelected(job)) return false
  await releaseReservation(trx, { id: jobId })
  await trx
    .updateTable('job')
    .set({ state: 'loading', finished_at: null })
    .where('id', '=', jobId)
    .where('account_id', 'is not', null)
    .execute()
  // What was never queued was never counted.
  if (job.state !== 'loading') await subtractStoredRows(trx, job)
  return true
}

async function deleteItems(trx: Trx, jobId: string): Promise<number> {
  // Who removes the same job waits here: were pages to overlap, a short one would be no last one.
  await lockedJob(trx, jobId)
  const { numDeletedRows } = await trx
    .deleteFrom('item')
    .where('job_id', '=', jobId)
    .where('position', 'in', query =>
      query.selectFrom('item').select('position').where('job_id', '=', jobId).limit(ROWS_MAX),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
