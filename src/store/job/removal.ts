import { breathe } from '../../base/clock.ts'
import { releaseHold } from '../account/credits.ts'
import { type Database, type Trx, write } from '../database.ts'
import { listLock, lockJob } from '../lock.ts'
import type { Job } from './jobs.ts'

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
      await deleteJob(database, job.id)
      deleted.push(job)
    } finally {
      lock.release()
    }
  }
  return deleted
}

/** Rows removed in one go: the event loop stands still meanwhile. */
const ROWS_MAX = 5_000

/** Removes a job with all its items; what it still holds of its account's credits goes back. */
export async function deleteJob(database: Database, jobId: string): Promise<void> {
  await write(database, async trx => {
    await releaseHold(trx, { id: jobId })
    while ((await deleteItems(trx, jobId)) === ROWS_MAX) await breathe()
    await trx.deleteFrom('job').where('id', '=', jobId).execute()
  })
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
