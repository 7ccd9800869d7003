import { sql } from 'kysely'
import { type Database, writeConcurrent } from '../db/database.ts'
import { inArray } from '../db/sql-dialect.ts'
import { type Job, openJobIn } from './job-store.ts'

/** Those of these jobs of accounts that are to be worked on. */
export function openJobsAmong({ reader }: Database, ids: readonly string[]): Promise<Job[]> {
  return reader
    .selectFrom('job')
    .selectAll()
    .where(sql<boolean>`id in ${inArray(reader, ids)}`)
    .where('account_id', 'is not', null)
    .where('state', 'in', ['queued', 'processing'])
    .execute()
}

/** Those of these jobs that are there, as they stand. */
export function jobsAmong({ reader }: Database, ids: readonly string[]): Promise<Job[]> {
  return reader
    .selectFrom('job')
    .selectAll()
    .where(sql<boolean>`id in ${inArray(reader, ids)}`)
    .execute()
}

/** Takes a job of an account up where others may work on it already: what they ask about stays theirs. Null: it is over. */
export function beginJob(database: Database, jobId: string): Promise<Job | null> {
  return writeConcurrent(database, async trx => {
    await trx
      .updateTable('job')
      .set({ state: 'processing', started_at: database.clock.now() })
      .where('id', '=', jobId)
      .where('state', '=', 'queued')
      .where('account_id', 'is not', null)
      .execute()
    const job = await openJobIn(trx, jobId)
    return job?.account_id == null ? null : job
  })
}
