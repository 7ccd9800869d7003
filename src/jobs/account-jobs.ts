import { sql } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Job } from './job-store.ts'
import type { JobState } from './tables.ts'

/** A job of an account; null where it is another's, or not all there yet. */
export async function accountJob(
  { reader }: Database,
  accountId: string,
  jobId: string,
): Promise<Job | null> {
  const job = await reader
    .selectFrom('job')
    .selectAll()
    .where('id', '=', jobId)
    .where('account_id', '=', accountId)
    .where('state', '<>', 'loading')
    .executeTakeFirst()
  return job ?? null
}

export type JobsOptions = {
  readonly accountId: string
  /** The last of the page before; null: from the newest on. */
  readonly after: { readonly createdAt: number; readonly id: string } | null
  readonly max: number
  readonly state?: JobState
  readonly sandbox?: boolean
}

/** The lists of an account, the newest first. */
export function accountJobs({ reader }: Database, o: JobsOptions): Promise<Job[]> {
  let query = reader
    .selectFrom('job')
    .selectAll()
    .where('account_id', '=', o.accountId)
    .where('type', '<>', 'single')
    .where('state', '<>', 'loading')
  if (o.state !== undefined) query = query.where('state', '=', o.state)
  if (o.sandbox !== undefined) query = query.where('sandbox', '=', o.sandbox ? 1 : 0)
  if (o.after !== null) {
    query = query.where(sql<boolean>`(created_at, id) < (${o.after.createdAt}, ${o.after.id})`)
  }
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(o.max).execute()
}

/** The jobs of all accounts that are not finished, the oldest first: a service that starts goes on with them. */
export function openJobs({ db }: Database): Promise<Job[]> {
  return (
    db
      .selectFrom('job')
      .selectAll()
      .where('account_id', 'is not', null)
      // In so many words, for the index of these.
      .where('finished_at', 'is', null)
      .where('state', 'in', ['queued', 'processing'])
      .orderBy('created_at')
      .orderBy('id')
      .execute()
  )
}
