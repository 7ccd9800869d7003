import { createReadStream } from 'node:fs'
import type { Context } from 'hono'
import {
  type DetectOptions,
  detectColumns,
  detectDialect,
  type ListDialect,
  type ListRow,
  readList,
} from '../../csv/csv.ts'
import { readContentHead } from '../../formats/open-content.ts'
import type { SubmitOptions } from '../../jobs/job-store.ts'
import { formatNumber } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'
import { FILE_ROWS_MAX } from './emails.ts'
import { parseMetadataField } from './metadata.ts'
import { readListOptions } from './queue.ts'
import type { TextUpload } from './text-upload.ts'
import type { Upload } from './upload.ts'

/**
 * Detects the dialect of an uploaded list and its address column. Throws if the column is not
 * found.
 */
export const findDialect = (upload: TextUpload): Promise<ListDialect> =>
  detected(upload, detectDialect)

/** Detects the columns of an uploaded list. The address column may be missing. */
export const findColumns = (upload: TextUpload) => detected(upload, detectColumns)

/** Yields the rows of an uploaded list in chunks. */
export async function* readRows(
  path: string,
  dialect: ListDialect,
): AsyncGenerator<readonly ListRow[]> {
  for await (const batch of readList(createReadStream(path), dialect)) {
    const last = batch.at(-1)
    if (last !== undefined && last.row > FILE_ROWS_MAX) throw tooManyRows()
    yield batch
  }
}

/** Reads a boolean form field; null if it is omitted. */
export function readFlag(fields: Upload['fields'], field: string): boolean | null {
  const text = fields.get(field)
  if (text === undefined || text === '') return null
  if (text === 'true' || text === '1') return true
  if (text === 'false' || text === '0') return false
  const excerpt = sanitizeText(text, 40)
  throw new ApiError(
    'invalid_request',
    `"${field}" is ${JSON.stringify(excerpt)}; it must be true or false.`,
  )
}

/** Reads the options of a job from the fields of a form. */
export const readFormOptions = (
  c: Context<Env>,
  service: Service,
  fields: Upload['fields'],
): Promise<SubmitOptions> =>
  readListOptions(c, service, {
    check_smtp: readFlag(fields, 'check_smtp'),
    force_refresh: readFlag(fields, 'force_refresh'),
    notify: readFlag(fields, 'notify'),
    metadata: parseMetadataField(fields.get('metadata')),
    webhook_url: fields.get('webhook_url'),
  })

/** Names of the form fields for messages of the detection. */
const WORDS = {
  column: 'column',
  columnForms: 'the field column, by its name or by its number from 1',
  noHeader: 'header=false',
}

async function detected<T>(
  { path, fields, content }: TextUpload,
  detect: (head: Uint8Array, options: DetectOptions) => T,
): Promise<T> {
  const { head, complete } = await readContentHead({ read: () => createReadStream(path) })
  const column = fields.get('column')
  const encoding = fields.get('encoding')
  const header = readFlag(fields, 'header')
  return detect(head, {
    ...{ complete, words: WORDS },
    ...(column === undefined || column === '' ? {} : { column: parseColumn(column) }),
    ...(encoding === undefined || encoding === '' ? {} : { encoding }),
    ...(header === null ? {} : { header }),
    ...content.known,
  })
}

/** Digits are the number of a column; anything else is its name. */
const parseColumn = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : text)

const tooManyRows = () =>
  new ApiError(
    'too_many_emails',
    `The file has more than ${formatNumber(FILE_ROWS_MAX)} rows, which is the maximum. Split it.`,
  )
