import type { Database } from '../../db/database.ts'
import { decodeResult } from '../../engine/verdict/stored-result.ts'
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
 * Rows of the first page and of the largest page: about 10 ms of work, so that other requests are
 * not delayed.
 */
const PAGE_ROWS_FIRST = 50
const PAGE_ROWS_MAX = 500
/**
 * Stored length of the rows of a page, excluding the last one. A row of a file can have a megabyte;
 * then a page has few rows.
 */
const PAGE_LENGTH_MAX = 1024 * 1024
/**
 * Text of a page, excluding its last row. It is what a slow reader holds in memory, and bounds the
 * work of a page whose rows are padded to thousands of columns.
 */
const TEXT_LENGTH_MAX = 64 * 1024

/** Formats rows. */
type RowFormat = {
  /** Returns the texts of rows, without those that are left out. */
  readonly present: (rows: readonly JobRow[]) => readonly string[]
  /**
   * Number of columns to which short rows are padded; null if rows are formatted one at a time, as
   * the length of their texts is not known before.
   */
  readonly columns: number | null
}

/**
 * Yields the rows of a job that have a result, in the order of the list, page by page as formatted
 * by `present`. Nothing but the text of a page is
 * held in memory while a slow reader takes it: rows that did not fit are read again. Throws if rows
 * are missing at the end: a job that is deleted while it is read must not look like a shorter one.
 */
export async function* rowTexts(
  database: Database,
  job: Job,
  { classes }: RowsOptions,
  format: RowFormat,
): AsyncGenerator<string[]> {
  const filter = classes === undefined ? {} : { classes }
  let [count, after, max] = [0, 0, PAGE_ROWS_FIRST]
  const next = async () => {
    const options = { jobId: job.id, after, max, lengthMax: PAGE_LENGTH_MAX, ...filter }
    const stored = await resultPage(database, options)
    const page = formatRows(stored, format)
    count += page.count
    after = stored[page.read - 1]?.position ?? after
    max = Math.min(PAGE_ROWS_MAX, 2 * page.read)
    return { texts: page.texts, isLast: stored.length === 0 }
  }
  for (let isLast = false; !isLast; ) {
    const page = await next()
    if (page.texts.length > 0) yield page.texts
    isLast = page.isLast
  }
  if (!(await isComplete(database, job, count, classes))) {
    throw new Error(`the job ${job.id} changed while its results were read`)
  }
}

type FormattedRows = {
  readonly texts: string[]
  /** Number of stored rows that were read; the others did not fit. */
  readonly read: number
  /** Number of them that have a result. */
  readonly count: number
}

function formatRows(stored: readonly ResultRow[], { present, columns }: RowFormat): FormattedRows {
  const texts: string[] = []
  let [read, count, length] = [0, 0, 0]
  while (read < stored.length && length < TEXT_LENGTH_MAX) {
    const group = stored.slice(
      read,
      endOfGroup(stored, read, { columns, lengthMax: TEXT_LENGTH_MAX - length }),
    )
    read += group.length
    const rows = group.flatMap(toRow)
    count += rows.length
    for (const text of present(rows)) {
      texts.push(text)
      length += text.length
    }
  }
  return { texts, read, count }
}

/**
 * Returns the index after the rows from `start` on that are formatted together: as few as have about
 * this length as text.
 */
function endOfGroup(
  stored: readonly ResultRow[],
  start: number,
  { columns, lengthMax }: Pick<RowFormat, 'columns'> & { readonly lengthMax: number },
): number {
  if (columns === null) return start + 1
  let length = 0
  let end = start
  for (; end < stored.length && length < lengthMax; end++) {
    const row = stored[end]
    length += columns + (row?.cells?.length ?? 0) + (row?.result?.length ?? 0)
  }
  return end
}

/** Converts a stored row; returns an empty array if it has no result. */
export function toRow(row: ResultRow): JobRow[] {
  const { position, text, cells, dedupeKey, class: klass } = row
  if (row.result === null || klass === null) return []
  const result = decodeResult(row.result)
  const parsed = cells === null ? null : (JSON.parse(cells) as string | string[])
  return [
    {
      position,
      dedupeKey,
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
