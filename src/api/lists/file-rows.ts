import { createReadStream } from 'node:fs'
import {
  type DetectOptions,
  detectColumns,
  detectDialect,
  type ListDialect,
  type ListRow,
  readList,
} from '../../csv/csv.ts'
import { readHead } from '../../jobs/import/submission.ts'
import type { JobOptions } from '../../jobs/job-store.ts'
import { formatNumber } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { ApiError } from '../errors/api-error.ts'
import { FILE_ROWS_MAX } from './emails.ts'
import { readListOptions } from './queue.ts'
import type { Upload } from './upload.ts'

/** How an uploaded list is written, and where its addresses stand. Throws where that is not found. */
export const dialectOf = (upload: Upload): Promise<ListDialect> => detected(upload, detectDialect)

/** The same where its owner may still say where they stand. */
export const columnsOf = (upload: Upload) => detected(upload, detectColumns)

/** The rows of an uploaded list, in portions. */
export async function* rowsOf(
  path: string,
  dialect: ListDialect,
): AsyncGenerator<readonly ListRow[]> {
  for await (const batch of readList(createReadStream(path), dialect)) {
    const last = batch.at(-1)
    if (last !== undefined && last.row > FILE_ROWS_MAX) throw tooManyRows()
    yield batch
  }
}

/** A field that says yes or no; null: left out. */
export function readFlag(fields: Upload['fields'], field: string): boolean | null {
  const text = fields.get(field)
  if (text === undefined || text === '') return null
  if (text === 'true' || text === '1') return true
  if (text === 'false' || text === '0') return false
  const given = sanitizeText(text, 40)
  throw new ApiError(
    'invalid_request',
    `"${field}" is ${JSON.stringify(given)}; it must be true or false.`,
  )
}

/** How the addresses of a file are asked. */
export const readFormOptions = (fields: Upload['fields']): JobOptions =>
  readListOptions({
    check_smtp: readFlag(fields, 'check_smtp'),
    force_refresh: readFlag(fields, 'force_refresh'),
    webhook_url: fields.get('webhook_url'),
  })

/** How messages about a list name what can be said of it. */
const WORDS = {
  column: 'column',
  columnForms: 'the field column, by its name or by its number from 1',
  noHeader: 'header=false',
}

async function detected<T>(
  { path, fields }: Upload,
  detect: (head: Uint8Array, options: DetectOptions) => T,
): Promise<T> {
  const { head, complete } = await readHead(path)
  const column = fields.get('column')
  const encoding = fields.get('encoding')
  const header = readFlag(fields, 'header')
  return detect(head, {
    ...{ complete, words: WORDS },
    ...(column === undefined || column === '' ? {} : { column: asColumn(column) }),
    ...(encoding === undefined || encoding === '' ? {} : { encoding }),
    ...(header === null ? {} : { header }),
  })
}

/** A number is one, and anything else a name. */
const asColumn = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : text)

const tooManyRows = () =>
  new ApiError(
    'too_many_emails',
    `The file has more than ${formatNumber(FILE_ROWS_MAX)} rows, which is the most a file may have. Divide it.`,
  )
