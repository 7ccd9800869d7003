import { createReadStream } from 'node:fs'
import {
  type DetectOptions,
  detectColumns,
  detectDialect,
  type ListDialect,
  type ListRow,
  readList,
} from '../../csv/csv.ts'
import { readContentHead } from '../../formats/open-content.ts'
import { formatNumber } from '../../platform/format.ts'
import { ApiError } from '../errors/api-error.ts'
import { FILE_ROWS_MAX } from './emails.ts'
import type { TextUpload } from './text-upload.ts'

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

/** Names of the form fields for messages of the detection. */
const WORDS = {
  column: 'column',
  columnForms: 'the field column, by its name or by its number from 1',
  noHeader: 'header=false',
}

async function detected<T>(
  { path, options, content }: TextUpload,
  detect: (head: Uint8Array, options: DetectOptions) => T,
): Promise<T> {
  const { head, complete } = await readContentHead({ read: () => createReadStream(path) })
  const { column, encoding, header } = options
  return detect(head, {
    ...{ complete, words: WORDS },
    ...(column === undefined || column === '' ? {} : { column: parseColumn(String(column)) }),
    ...(encoding === undefined || encoding === '' ? {} : { encoding }),
    ...(header == null ? {} : { header }),
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
