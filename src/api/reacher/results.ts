import type { Context } from 'hono'
import { createRowWriter } from '../../csv/csv.ts'
import type { Database } from '../../db/database.ts'
import { decodeResult } from '../../engine/verdict/stored-result.ts'
import {
  type CheckOutput,
  presentCheck,
  presentMissing,
  REACHER_COLUMNS,
  toReacherValues,
} from '../../formats/vocabulary/reacher.ts'
import type { Job } from '../../jobs/job-store.ts'
import { type ResultRow, resultPage } from '../../jobs/results/result-store.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { NO_COLUMNS } from '../jobs/download.ts'
import { textStream } from '../text-stream.ts'

export type ResultDeps = Pick<ApiDeps, 'clock' | 'database' | 'log'>

/** Rows of a page: about 10 ms of work, so that other requests are not delayed. */
const PAGE_ROWS_MAX = 50
/** Results of a response as JSON that does not say how many it wants. */
const JSON_LIMIT = 50

type ResultsRange = {
  /** Number of rows to skip. */
  readonly offset: number
  readonly limit?: number | undefined
}

/** Responds with results in the order of the list. */
export function answerJson(
  c: Context<Env>,
  service: ResultDeps,
  job: Job,
  { offset, limit = JSON_LIMIT }: ResultsRange,
): Response {
  const chunks = jsonChunks(readOutputs(service.database, job, { offset, limit }))
  return c.body(textStream(c, service, chunks), 200, { 'Content-Type': 'application/json' })
}

async function* jsonChunks(pages: AsyncIterable<readonly CheckOutput[]>): AsyncGenerator<string> {
  let before = '{"results":['
  for await (const page of pages) {
    yield before + page.map(output => JSON.stringify(output)).join(',')
    before = ','
  }
  yield before === ',' ? ']}' : `${before}]}`
}

/** Responds with results as CSV; with all of them, unless the request limits them. */
export function answerCsv(
  c: Context<Env>,
  service: ResultDeps,
  job: Job,
  { offset, limit = Number.MAX_SAFE_INTEGER }: ResultsRange,
): Response {
  const chunks = csvChunks(readOutputs(service.database, job, { offset, limit }))
  return c.body(textStream(c, service, chunks), 200, { 'Content-Type': 'text/csv' })
}

async function* csvChunks(pages: AsyncIterable<readonly CheckOutput[]>): AsyncGenerator<string> {
  const writer = createRowWriter(NO_COLUMNS, REACHER_COLUMNS)
  yield writer.header()
  for await (const page of pages) {
    yield writer.rows(page.map(output => ({ cells: [], values: toReacherValues(output) }))).join('')
  }
}

/**
 * Yields the rows after `offset`, page by page. Throws if rows are missing: a job that is deleted
 * while it is read must not look like a shorter one.
 */
async function* readOutputs(
  database: Database,
  { id: jobId, total }: Job,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): AsyncGenerator<readonly CheckOutput[]> {
  const end = Math.min(total, offset + limit)
  let after = offset
  while (after < end) {
    const max = Math.min(PAGE_ROWS_MAX, end - after)
    const rows = await resultPage(database, { jobId, after, max })
    if (rows.length < max) throw new Error(`the job ${jobId} was deleted while it was read`)
    yield rows.map(toOutput)
    after += max
  }
}

function toOutput({ text, class: klass, result }: ResultRow): CheckOutput {
  const found = result === null ? null : decodeResult(result)
  return found === null ? presentMissing(text, klass) : presentCheck(found, text)
}
