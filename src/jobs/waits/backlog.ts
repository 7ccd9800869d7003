import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../../db/database.ts'
import { jobsWaitingFor } from '../item-claims.ts'
import { lastPosition } from '../results/result-store.ts'

/** Rows of a job that are routed to an operator and wait for the same cause. */
export type WaitingRows = {
  readonly operator: string
  readonly cause: WaitingCause
  readonly count: number
  /** When the first and the last of these rows are due, epoch ms. */
  readonly firstDueAt: number
  readonly lastDueAt: number
}

/**
 * `due`: they can be probed. `retry`: a mail server was asked, and is asked again later.
 * `postponed`: no mail server was asked yet, and none is before they are due.
 */
type WaitingCause = 'due' | 'retry' | 'postponed'

/** Maximum number of rows counted over all jobs, by an index: about 5 ms. */
const READ_MAX = 20_000
/**
 * Maximum number of waiting rows counted by operator, in about 5 ms; beyond it a sample is enough.
 */
const COUNTED_BY_OPERATOR_MAX = 5_000
/** Rows of the sample, spread evenly over the list. */
const SAMPLE_ROWS = 200
/** Maximum number of groups of rows reported. */
const GROUPS_MAX = 20

/**
 * Returns the waiting rows of a job by operator and cause, the most rows first. The counts are
 * estimates if `readMax` rows or more wait.
 */
export async function waitingRows(
  database: Database,
  jobId: string,
  readMax = COUNTED_BY_OPERATOR_MAX,
): Promise<WaitingRows[]> {
  const inJob = sql`job_id = ${jobId} and state = 'routed'`
  const isFew = (await countRows(database, sql`state = 'routed'`, readMax)) < readMax
  if (isFew) return countByOperator(database, inJob)
  const last = await lastPosition(database, jobId)
  const step = Math.max(1, Math.floor(last / SAMPLE_ROWS))
  const positions = Array.from({ length: Math.ceil(last / step) }, (_, at) => at * step + 1)
  const inSample = sql`${inJob} and position in (${sql.join(positions)})`
  const sample = await countByOperator(database, inSample)
  return sample.map(row => ({ ...row, count: row.count * step }))
}

async function countByOperator(
  { reader, steadyClock }: Database,
  where: RawBuilder<unknown>,
): Promise<WaitingRows[]> {
  // An item that was asked about is pinned to its egress, which the index holds; it has no `tries`.
  const { rows } = await sql<WaitingRows>`
    select operator, cause, count(*) as count, min(due_at) as "firstDueAt",
      max(due_at) as "lastDueAt"
    from (
      select operator, due_at, case when due_at <= ${steadyClock.now()} then 'due'
        when egress is null then 'postponed' else 'retry' end as cause
      from item where ${where}) as waiting
    group by operator, cause order by count desc, operator, cause limit ${GROUPS_MAX}`.execute(
    reader,
  )
  return rows.map(row => ({
    ...row,
    firstDueAt: steadyClock.toWallTime(row.firstDueAt),
    lastDueAt: steadyClock.toWallTime(row.lastDueAt),
  }))
}

/** Rows that wait for an operator in other jobs, and the number of these jobs. */
type OperatorBacklog = { readonly rows: number; readonly jobs: number }

/** Counts the rows of other jobs that wait for an operator. */
export async function countWaitingAt(
  database: Database,
  operator: string,
  jobId: string | null,
): Promise<OperatorBacklog> {
  const jobs = (await jobsWaitingFor(database, operator)).filter(id => id !== jobId)
  if (jobs.length === 0) return { rows: 0, jobs: 0 }
  const isWaiting = sql`operator = ${operator} and state = 'routed'`
  return { rows: await countOthers(database, isWaiting, jobId), jobs: jobs.length }
}

/** Counts the rows of other jobs that are not routed yet. */
export const unroutedRows = (database: Database, jobId: string | null): Promise<number> =>
  countOthers(database, sql`state = 'queued'`, jobId)

/** Counts rows of other jobs, in two ranges of an index: `<>` would read all rows of the job. */
async function countOthers(
  database: Database,
  where: RawBuilder<unknown>,
  jobId: string | null,
): Promise<number> {
  const id = jobId ?? ''
  const before = await countRows(database, sql`${where} and job_id < ${id}`)
  if (before >= READ_MAX) return before
  const after = await countRows(database, sql`${where} and job_id > ${id}`, READ_MAX - before)
  return before + after
}

/** Counts by an index, up to `max`. */
async function countRows(
  { reader }: Database,
  where: RawBuilder<unknown>,
  max = READ_MAX,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count
    from (select 1 from item where ${where} limit ${max}) as counted`.execute(reader)
  return Number(rows[0]?.count ?? 0)
}
