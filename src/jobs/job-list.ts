import { sql } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Job } from './job-store.ts'
import type { JobState } from './tables.ts'

/** Jobs of a person fit on some screens; finished ones go after a while. */
const JOBS_MAX = 1_000

/** All lists, the latest first; single verifications that nobody waits for are none. */
export function listJobs({ db }: Database): Promise<Job[]> {
  return db
    .selectFrom('job')
    .selectAll()
    .where('type', '<>', 'single')
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(JOBS_MAX)
    .execute()
}

/** The jobs that somebody may go on with: also those that only their output is missing of, which the service writes none of. */
export function unfinishedJobs({ db }: Database): Promise<Job[]> {
  return db
    .selectFrom('job')
    .selectAll()
    .where('written_at', 'is', null)
    .where('state', 'not in', ['cancelled', 'failed'])
    .where(eb => eb.or([eb('state', '<>', 'completed'), eb('account_id', 'is', null)]))
    .execute()
}

/** The jobs whose ID begins so. */
export function findJobs({ db }: Database, prefix: string): Promise<Job[]> {
  return db
    .selectFrom('job')
    .selectAll()
    .where(sql<string>`substr(id, 1, ${prefix.length})`, '=', prefix)
    .orderBy('created_at', 'desc')
    .execute()
}

export type Waiting = {
  readonly operator: string
  readonly items: number
  /** When the first of them is due, epoch ms. */
  readonly dueAt: number
}

/** What a job has yet to do. */
export type Rest = {
  /** Items that nobody looked at yet. */
  readonly queued: number
  /** Items that are being asked, or were when the process that asked them ended. */
  readonly probing: number
  /** Operators that have items waiting: what is due first comes first. */
  readonly waiting: readonly Waiting[]
}

export async function restOf({ db }: Database, jobId: string): Promise<Rest> {
  const counted = await sql<{ state: string; items: number }>`
    select 'queued' as state, count(*) as items from item
      where job_id = ${jobId} and state = 'queued'
    union all select 'probing', count(*) from item
      where job_id = ${jobId} and state = 'probing'`.execute(db)
  const waiting = await sql<Waiting>`
    select operator, count(*) as items, min(due_at) as "dueAt" from item
    where job_id = ${jobId} and state = 'routed'
    group by operator order by "dueAt", items desc, operator`.execute(db)
  const count = (state: string) => Number(counted.rows.find(row => row.state === state)?.items ?? 0)
  return { queued: count('queued'), probing: count('probing'), waiting: waiting.rows }
}

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

type JobsOptions = {
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
