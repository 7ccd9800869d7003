import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../db/database.ts'
import { jobsWaitingFor } from './item-claims.ts'
import { lastPosition } from './results/result-store.ts'

/** Rows of a job that have an operator and wait to be asked. */
export type WaitingRows = {
  readonly operator: string
  readonly count: number
  /** When the first and the last of them may be asked, epoch ms. */
  readonly firstDueAt: number
  readonly lastDueAt: number
}

/** Rows that are counted by an index, of all jobs: some 5 ms. */
const READ_MAX = 20_000
/** As many waiting rows are counted by operator in some 5 ms; of more, a sample tells enough. */
const COUNTED_BY_OPERATOR_MAX = 5_000
/** Rows of a sample, spread evenly over the list. */
const SAMPLE_ROWS = 200
/** Operators that are told of. */
const OPERATORS_MAX = 20

/** What a job waits for by operator, the most rows first; the counts are estimates where `readMax` rows or more wait. */
export async function waitingRows(
  database: Database,
  jobId: string,
  readMax = COUNTED_BY_OPERATOR_MAX,
): Promise<WaitingRows[]> {
  const ofJob = sql`job_id = ${jobId} and state = 'routed'`
  const isFew = (await countRows(database, sql`state = 'routed'`, readMax)) < readMax
  if (isFew) return countByOperator(database, ofJob)
  const last = await lastPosition(database, jobId)
  const step = Math.max(1, Math.floor(last / SAMPLE_ROWS))
  const positions = Array.from({ length: Math.ceil(last / step) }, (_, at) => at * step + 1)
  const inSample = sql`${ofJob} and position in (${sql.join(positions)})`
  const sample = await countByOperator(database, inSample)
  return sample.map(row => ({ ...row, count: row.count * step }))
}

async function countByOperator(
  { reader }: Database,
  where: RawBuilder<unknown>,
): Promise<WaitingRows[]> {
  const { rows } = await sql<WaitingRows>`
    select operator, count(*) as count, min(due_at) as "firstDueAt", max(due_at) as "lastDueAt"
    from item where ${where} group by operator order by 2 desc limit ${OPERATORS_MAX}`.execute(
    reader,
  )
  return rows
}

/** What waits for an operator, beside one job. */
export type OperatorBacklog = { readonly rows: number; readonly jobs: number }

/** What other jobs have waiting for an operator. */
export async function countWaitingAt(
  database: Database,
  operator: string,
  jobId: string | null,
): Promise<OperatorBacklog> {
  const jobs = (await jobsWaitingFor(database, operator)).filter(id => id !== jobId)
  if (jobs.length === 0) return { rows: 0, jobs: 0 }
  const isThere = sql`operator = ${operator} and state = 'routed' and job_id <> ${jobId ?? ''}`
  return { rows: await countRows(database, isThere), jobs: jobs.length }
}

/** Rows of other jobs whose operators are not known yet. */
export const unroutedRows = (database: Database, jobId: string | null): Promise<number> =>
  countRows(database, sql`state = 'queued' and job_id <> ${jobId ?? ''}`)

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
