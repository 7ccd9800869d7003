import type { Database } from '../../db/database.ts'
import type { Class, Result } from '../../engine/verdict/verdict.ts'
import { accountJob } from '../../jobs/job-list.ts'
import type { Job } from '../../jobs/job-store.ts'
import { type ResultRow, resultPage } from '../../jobs/results/result-store.ts'
import { type ComparedResult, parsePrevious } from '../../jobs/reverify/changes.ts'

/** A row of a list with its result. */
export type JobRow = {
  /** Row number, from 1. */
  readonly position: number
  /** The ID that was submitted with the row; null if none was. */
  readonly id: string | null
  /** The cells of the row in the uploaded file; null for other lists. */
  readonly cells: readonly string[] | null
  /** Equal for all rows with the same address. */
  readonly dedupeKey: string
  readonly class: Class
  /** Null if the address was erased (`ev purge`); only its class remains. */
  readonly result: Result | null
  /** The result that the row had before the job verified it again; null if there is none. */
  readonly previous: ComparedResult | null
}

export type RowsOptions = {
  /** All rows if omitted. */
  readonly classes?: readonly Class[] | undefined
}

/**
 * Rows of the first page and of the largest page: some 10 ms of work, so that other requests are
 * not delayed.
 */
const PAGE_ROWS_FIRST = 50
const PAGE_ROWS_MAX = 500
/** Target length of one page. A row of a file can have a megabyte; then a page has few rows. */
const PAGE_LENGTH = 1024 * 1024

/**
 * Yields the rows of a job that have a result, in the order of the list, page by page as converted
 * by `present`. The rows themselves are not held in memory while a slow reader takes a page. Throws
 * if rows are missing at the end: a job that is deleted while it is read must not look like a
 * shorter one.
 */
export async function* rowPages<T>(
  database: Database,
  job: Job,
  { classes }: RowsOptions,
  present: (rows: readonly JobRow[]) => T,
): AsyncGenerator<T> {
  const filter = classes === undefined ? {} : { classes }
  let [count, after, max] = [0, 0, PAGE_ROWS_FIRST]
  const next = async () => {
    const page = await resultPage(database, { jobId: job.id, after, max, ...filter })
    const rows = page.flatMap(toRow)
    const isLast = page.length < max
    count += rows.length
    after = page.at(-1)?.position ?? after
    max = nextMax(page)
    return { presented: rows.length > 0 ? [present(rows)] : [], isLast }
  }
  for (let isLast = false; !isLast; ) {
    const page = await next()
    yield* page.presented
    isLast = page.isLast
  }
  if (!(await isComplete(database, job, count, classes))) {
    throw new Error(`the job ${job.id} changed while its results were read`)
  }
}

/**
 * Estimates how many rows fit the next page from the length of the last one; at most doubles it.
 */
function nextMax(page: readonly ResultRow[]): number {
  let length = 1
  for (const { text, cells, result } of page) {
    length += text.length + (cells?.length ?? 0) + (result?.length ?? 0)
  }
  const fitting = Math.floor((page.length * PAGE_LENGTH) / length)
  return Math.max(1, Math.min(PAGE_ROWS_MAX, 2 * page.length, fitting))
}

/** Converts a stored row; returns an empty array if it has no result. */
export function toRow(row: ResultRow): JobRow[] {
  const { position, text, cells, dedupeKey, class: klass } = row
  if (row.result === null || klass === null) return []
  const result = JSON.parse(row.result) as Result | null
  const parsed = cells === null ? null : (JSON.parse(cells) as string | string[])
  return [
    {
      ...{ position, dedupeKey },
      id: typeof parsed === 'string' ? parsed : null,
      cells: Array.isArray(parsed) ? parsed : null,
      class: klass,
      // A duplicate shares the result of its first occurrence, which can spell the domain
      // differently.
      result: result === null || result.email === text ? result : { ...result, email: text },
      previous: row.previous === null ? null : parsePrevious(row.previous),
    },
  ]
}

async function isComplete(
  database: Database,
  job: Job,
  count: number,
  classes: readonly Class[] | undefined,
): Promise<boolean> {
  if ((await accountJob(database, job.account_id ?? '', job.id)) === null) return false
  // A running job may have gained rows in the meantime.
  if (job.state !== 'completed') return true
  return count === (classes?.reduce((sum, one) => sum + job[one], 0) ?? job.total)
}
