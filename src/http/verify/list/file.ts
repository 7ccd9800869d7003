import { createReadStream } from 'node:fs'
import type { Context } from 'hono'
import { cleanText } from '../../../base/text.ts'
import { detectDialect, type ListDialect, readList } from '../../../job/csv.ts'
import { readHead } from '../../../job/list-head.ts'
import type { Row } from '../../../work/submit.ts'
import type { Env } from '../../context.ts'
import { ApiError } from '../../error/api-error.ts'
import type { Service } from '../../service.ts'
import { readName } from './batch.ts'
import { FILE_ROWS_MAX } from './emails.ts'
import { linksOf, presentQueued, queueList } from './queue.ts'
import type { Upload } from './upload.ts'

/** `POST /v1/verify/file`: a list as people have it becomes a job; its columns come back with the results. */
export async function verifyFile(
  c: Context<Env>,
  service: Service,
  { path, fields }: Upload,
): Promise<Response> {
  const name = readName(fields.get('name'))
  const deduplicate = readFlag('deduplicate', fields.get('deduplicate')) ?? true
  const dialect = await dialectOf(path, fields)
  const source = JSON.stringify({ dialect })
  const listed = { type: 'file' as const, name, deduplicate, source, rows: rowsOf(path, dialect) }
  return queueList(c, service, listed, job => ({
    ...presentQueued(service, job, `File queued. Check GET /v1/jobs/${job.id}`),
    ...linksOf(job),
    column: dialect.columnName,
    column_number: dialect.column + 1,
    header: dialect.header !== null,
    rows: job.total,
  }))
}

/** How messages about a list name what can be said of it. */
const WORDS = {
  column: 'column',
  columnForms: 'the field column, by its name or by its number from 1',
  noHeader: 'header=false',
}

async function dialectOf(path: string, fields: ReadonlyMap<string, string>): Promise<ListDialect> {
  const { head, complete } = await readHead(path)
  const column = fields.get('column')
  const header = readFlag('header', fields.get('header'))
  return detectDialect(head, {
    ...{ complete, words: WORDS },
    ...(column === undefined || column === '' ? {} : { column: asColumn(column) }),
    ...(header === null ? {} : { header }),
  })
}

/** A number is one, and anything else a name. */
const asColumn = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : text)

async function* rowsOf(path: string, dialect: ListDialect): AsyncGenerator<readonly Row[]> {
  for await (const batch of readList(createReadStream(path), dialect)) {
    const last = batch.at(-1)
    if (last !== undefined && last.row > FILE_ROWS_MAX) throw tooManyRows()
    yield batch.map(({ text, cells }) => ({ text, cells: JSON.stringify(cells) }))
  }
}

const tooManyRows = () =>
  new ApiError(
    'too_many_emails',
    `The file has more than ${FILE_ROWS_MAX.toLocaleString('en')} rows, which is the most a file may have. Divide it.`,
  )

/** Null: left out. */
function readFlag(field: string, text: string | undefined): boolean | null {
  if (text === undefined || text === '') return null
  if (text === 'true' || text === '1') return true
  if (text === 'false' || text === '0') return false
  const given = cleanText(text, 40)
  throw new ApiError('invalid_request', `${field} is “${given}”; it must be true or false.`)
}
