import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../db/database.ts'
import { isAfter, type PagePosition } from '../db/paging.ts'
import type { Reader } from '../db/reader.ts'
import { isPostgres } from '../db/sql-dialect.ts'
import { isProbing } from './item-store.ts'
import type { Job, Metadata } from './job-store.ts'
import type { JobState } from './tables.ts'

/** The storage and the open lists of an account. */
type AccountLoad = {
  /** Rows of all its jobs, including the sandbox. */
  readonly storedRows: number
  /** Its lists that are queued or processing. */
  readonly openLists: number
}

/** Reads the load of an account: one row, and an index of open lists. */
export async function getAccountLoad(db: Reader, accountId: string): Promise<AccountLoad> {
  const { rows } = await sql<AccountLoad>`
    select stored_rows as "storedRows", (
      select count(*) from job where account_id = account.id and finished_at is null
        and type <> 'single' and state <> 'loading') as "openLists"
    from account where id = ${accountId}`.execute(db)
  const { storedRows = 0, openLists = 0 } = rows[0] ?? {}
  return { storedRows: Number(storedRows), openLists: Number(openLists) }
}

/**
 * Lists the jobs with all these pairs in their metadata, the latest first, except asynchronous
 * single verifications.
 */
export function listJobs({ db }: Database, metadata: Metadata, max: number): Promise<Job[]> {
  const all = db.selectFrom('job').selectAll().where('type', '<>', 'single')
  return withMetadata(db, all, metadata)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(max)
    .execute()
}

/**
 * Lists the jobs that can be continued, including lists of the command line of which only the
 * output is missing; the service writes no output files.
 */
export function unfinishedJobs({ db }: Database): Promise<Job[]> {
  return db
    .selectFrom('job')
    .selectAll()
    .where('written_at', 'is', null)
    .where('state', 'not in', ['cancelled', 'failed'])
    .where(eb => eb.or([eb('state', '<>', 'completed'), eb('account_id', 'is', null)]))
    .execute()
}

/** Lists the jobs whose ID starts with `prefix`. */
export function findJobs({ db }: Database, prefix: string): Promise<Job[]> {
  return db
    .selectFrom('job')
    .selectAll()
    .where(sql<string>`substr(id, 1, ${prefix.length})`, '=', prefix)
    .orderBy('created_at', 'desc')
    .execute()
}

type WaitingOperator = {
  readonly operator: string
  readonly items: number
  /** When the first of them is due, epoch ms. */
  readonly dueAt: number
}

type RemainingWork = {
  /** Items that are not routed yet. */
  readonly queued: number
  /** Items that are being probed, or were when their process ended. */
  readonly probing: number
  /** Operators that have items waiting, in the order in which they are due. */
  readonly waiting: readonly WaitingOperator[]
}

export async function getRemainingWork(
  { db, steadyClock }: Database,
  jobId: string,
): Promise<RemainingWork> {
  const counted = await sql<{ state: string; items: number }>`
    select 'queued' as state, count(*) as items from item
      where job_id = ${jobId} and state = 'queued'
    union all select 'probing', count(*) from item
      where job_id = ${jobId} and ${isProbing(db)}`.execute(db)
  // Rows that wait for room at their operator have no due time.
  const waiting = await sql<WaitingOperator>`
    select operator, count(*) as items, min(coalesce(nullif(due_at, 0), ready_at)) as "dueAt"
    from item
    where job_id = ${jobId} and state = 'routed'
    group by operator order by "dueAt", items desc, operator`.execute(db)
  const count = (state: string) => Number(counted.rows.find(row => row.state === state)?.items ?? 0)
  return {
    queued: count('queued'),
    probing: count('probing'),
    waiting: waiting.rows.map(row => ({ ...row, dueAt: steadyClock.toWallTime(row.dueAt) })),
  }
}

/** Returns a job of an account; null if it belongs to another account or is still loading. */
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
  /** The last job of the previous page; null for the first page. */
  readonly after: PagePosition | null
  readonly max: number
  readonly state?: JobState
  /** Undefined: live and simulated jobs. */
  readonly sandbox?: boolean | undefined
  /** Only jobs with all these pairs in their metadata. */
  readonly metadata?: Metadata
}

/** Lists the jobs of an account, the newest first, except single verifications. */
export function accountJobs({ reader }: Database, o: JobsOptions): Promise<Job[]> {
  let query = reader
    .selectFrom('job')
    .selectAll()
    .where('account_id', '=', o.accountId)
    .where('type', '<>', 'single')
    .where('state', '<>', 'loading')
  if (o.state !== undefined) query = query.where('state', '=', o.state)
  if (o.sandbox !== undefined) query = query.where('sandbox', '=', o.sandbox ? 1 : 0)
  query = withMetadata(reader, query, o.metadata)
  if (o.after !== null) query = query.where(isAfter(o.after))
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(o.max).execute()
}

const withMetadata = <Query extends { where(condition: RawBuilder<boolean>): Query }>(
  db: Reader,
  query: Query,
  metadata: Metadata = {},
): Query =>
  Object.entries(metadata).reduce(
    (narrowed, [key, value]) => narrowed.where(hasMetadata(db, key, value)),
    query,
  )

/** Parses the `source` of each job that the other conditions select: some microseconds per job. */
const hasMetadata = (db: Reader, key: string, value: string) =>
  isPostgres(db)
    ? sql<boolean>`cast(source as json) -> 'metadata' ->> ${key} = ${value}`
    : sql<boolean>`exists (select 1 from json_each(job.source, '$.metadata') as pair
        where pair."key" = ${key} and pair.value = ${value})`

/** Lists the unfinished jobs of all accounts, the oldest first; a starting service resumes them. */
export function openJobs({ db }: Database): Promise<Job[]> {
  return (
    db
      .selectFrom('job')
      .selectAll()
      .where('account_id', 'is not', null)
      // Written literally, so that the partial index is used.
      .where('finished_at', 'is', null)
      .where('state', 'in', ['queued', 'processing'])
      .orderBy('created_at')
      .orderBy('id')
      .execute()
  )
}
