import type { Database } from '../../db/database.ts'
import type { Class, Result } from '../../engine/verdict/verdict.ts'
import { accountJob } from '../../jobs/job-list.ts'
import type { Job } from '../../jobs/job-store.ts'
import { type ResultRow, resultPage } from '../../jobs/results/result-store.ts'

/** A row of a list with its result. */
export type JobRow = {
  /** From 1. */
  readonly position: number
  /** What whoever submitted it called it by. */
  readonly id: string | null
  /** The cells of the uploaded file. */
  readonly cells: readonly string[] | null
  readonly class: Class
  /** Null: the address was erased (`ev purge`), and with it all that was known of it but the class. */
  readonly result: Result | null
}

export type RowsOptions = {
  /** Left out: all rows. */
  readonly classes?: readonly Class[] | undefined
}

/** Rows read in one go, at first and at most: some 10 ms of work, so that others have their turn. */
const PAGE_ROWS_FIRST = 50
const PAGE_ROWS_MAX = 500
/** Text of one page: a row of a file may have a megabyte, and then few of them are read at once. */
const PAGE_LENGTH = 1024 * 1024

/**
 * The rows of a job that have a result, in the order of the list, page by page as `present` makes something of them:
 * while a slow reader takes that, the rows themselves are not kept. Throws when they turn out not to be all: a job that
 * is deleted while it is read must not look like a shorter one.
 */
export async function* rowPages<T>(
  database: Database,
  job: Job,
  { classes }: RowsOptions,
  present: (rows: readonly JobRow[]) => T,
): AsyncGenerator<T> {
  const chosen = classes === undefined ? {} : { classes }
  let [count, after, max] = [0, 0, PAGE_ROWS_FIRST]
  const next = async () => {
    const page = await resultPage(database, { jobId: job.id, after, max, ...chosen })
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
  if (!(await isWhole(database, job, count, classes))) {
    throw new Error(`the job ${job.id} changed while its results were read`)
  }
}

/** As many rows as have about the text of a page, by those of the last one; no more than twice as many. */
function nextMax(page: readonly ResultRow[]): number {
  let length = 1
  for (const { text, cells, result } of page) {
    length += text.length + (cells?.length ?? 0) + (result?.length ?? 0)
  }
  const fitting = Math.floor((page.length * PAGE_LENGTH) / length)
  return Math.max(1, Math.min(PAGE_ROWS_MAX, 2 * page.length, fitting))
}

/** The row with its result, or nothing where it has none. */
export function toRow(row: ResultRow): JobRow[] {
  const { position, text, cells, class: klass } = row
  if (row.result === null || klass === null) return []
  const result = JSON.parse(row.result) as Result | null
  const came = cells === null ? null : (JSON.parse(cells) as string | string[])
  return [
    {
      position,
      id: typeof came === 'string' ? came : null,
      cells: Array.isArray(came) ? came : null,
      class: klass,
      // A duplicate has the result of its first, whose domain may be written otherwise.
      result: result === null || result.email === text ? result : { ...result, email: text },
    },
  ]
}

async function isWhole(
  database: Database,
  job: Job,
  count: number,
  classes: readonly Class[] | undefined,
): Promise<boolean> {
  if ((await accountJob(database, job.account_id ?? '', job.id)) === null) return false
  // A job that is under way may have gained rows meanwhile.
  if (job.state !== 'completed') return true
  return count === (classes?.reduce((sum, one) => sum + job[one], 0) ?? job.total)
}
