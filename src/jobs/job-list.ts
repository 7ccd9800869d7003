import { sql } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Job } from './job-store.ts'

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
