import { breathe } from '../../base/clock.ts'
import { releaseHold } from '../account/credits.ts'
import { type Database, type Trx, write } from '../database.ts'
import { listLock, lockJob } from '../lock.ts'
import { findJob, type Job } from './jobs.ts'

/** The jobs that were finished before a time, epoch ms: completed, cancelled or failed. */
export function jobsFinishedBefore({ db }: Database, before: number): Promise<Job[]> {
  return db
    .selectFrom('job')
    .selectAll()
    .where('finished_at', '<', before)
    .orderBy('created_at')
    .execute()
}

/** Removes the jobs that were finished before a time, epoch ms, but for those that a process works on. Gives the removed. */
export async function deleteJobsBefore(
  database: Database,
  dataDir: string,
  before: number,
): Promise<Job[]> {
  const deleted: Job[] = []
  for (const job of await jobsFinishedBefore(database, before)) {
    // One that is finished may be about to be written.
    const lock = lockJob(dataDir, listLock(job.source_key))
    if (lock === null) continue
    try {
      // While others were removed, somebody may have gone on with it.
      const now = await findJob(database, job.id)
      if (now?.finished_at == null || now.finished_at >= before) continue
      await deleteJob(database, job.id)
      deleted.push(job)
    } finally {
      lock.release()
    }
  }
  return deleted
}

/** Rows removed in one go: nobody else reads or writes meanwhile. */
const ROWS_MAX = 2_000

/**
 * Removes a job with all its items; what it still holds of its account's credits goes back. It is gone for its account
 * at once, and its items go page by page: what a crash leaves of it is removed as what never came to be queued is.
 */
export async function deleteJob(database: Database, jobId: string): Promise<void> {
  await write(database, trx => hideJob(trx, jobId))
  while ((await write(database, trx => deleteItems(trx, jobId))) === ROWS_MAX) await breathe()
  await write(database, trx => trx.deleteFrom('job').where('id', '=', jobId).execute())
}

/** A list of the command line stays as it is: were it loading, the same list would begin anew by it. */
async function hideJob(trx: Trx, jobId: string): Promise<void> {
  await releaseHold(trx, { id: jobId })
  await trx
    .updateTable('job')
    .set({ state: 'loading', finished_at: null })
    .where('id', '=', jobId)
    .where('account_id', 'is not', null)
    .execute()
}

async function deleteItems(trx: Trx, jobId: string): Promise<number> {
  const { numDeletedRows } = await trx
    .deleteFrom('item')
    .where('job_id', '=', jobId)
    .where('position', 'in', query =>
      query.selectFrom('item').select('position').where('job_id', '=', jobId).limit(ROWS_MAX),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
