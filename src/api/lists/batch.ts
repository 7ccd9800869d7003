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
import { parseCheckTime } from '../../formats/vocabulary/read-external.ts'
import {
  createExternalReader,
  describeExternal,
  type ExternalReader,
  findExternalSource,
} from '../../jobs/import/external-results.ts'
import { toListName } from '../../jobs/import/list-name.ts'
import type { Row } from '../../jobs/import/load-job.ts'
import type { Job } from '../../jobs/job-store.ts'
import { formatMebibytes, formatNumber } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../context.ts'
import { invalidRequest, requestError } from '../errors/request-errors.ts'
import { FILE_ROWS_MAX, readBatch } from './emails.ts'
import {
  jobLinks,
  type ListOptionFields,
  presentQueued,
  type QueueDeps,
  queueList,
  readListOptions,
  toChunks,
} from './queue.ts'
import { EXPANDED_BYTES_MAX, type FileOptions, type TextUpload } from './upload.ts'

export type BatchDeps = QueueDeps

type BatchBody = ListOptionFields & {
  readonly emails?: unknown
  readonly items?: unknown
  readonly name?: string | null | undefined
  readonly deduplicate?: boolean | undefined
}

/** `POST /v1/verify/batch`: always creates a job, however short the list is. */
export async function verifyBatch(
  c: Context<Env>,
  service: BatchDeps,
  body: BatchBody,
): Promise<Response> {
  const name = toDisplayName(body.name)
  const all = readBatch(body)
  const options = await readListOptions(c, service, body)
  // A download has an ID column if the list was submitted with IDs.
  const source = { ids: body.items !== undefined }
  const deduplicate = body.deduplicate ?? true
  const listed = {
    type: 'batch' as const,
    name,
    source,
    options,
    deduplicate,
    rowCount: all.length,
    rows: toChunks(all),
  }
  return queueList(c, service, listed, (job, estimated) => ({
    ...presentQueued(job, estimated, `Batch queued. Check GET /v1/jobs/${job.id}`),
    ...jobLinks(service, job),
  }))
}

/** Returns the display name of a job; null if it has none. */
const toDisplayName = (name: string | null | undefined): string | null =>
  sanitizeText(name ?? '') || null

/** Creates a job from a file. Its columns are returned with the results. */
export async function verifyFile(
  c: Context<Env>,
  service: BatchDeps,
  upload: TextUpload,
): Promise<Response> {
  const { path, fileName, content } = upload
  const name = toDisplayName(upload.options.name) ?? toListName(fileName)
  const deduplicate = upload.options.deduplicate ?? true
  const options = await readListOptions(c, service, upload.options)
  const dialect = await findDialect(upload)
  const external = readExternalOptions(service, dialect, upload.options)
  const rows = storedRows(path, dialect, external.reader)
  const listed = {
    type: 'file' as const,
    name,
    deduplicate,
    source: { dialect },
    options,
    rows,
    keepsExternal: external.isKept,
  }
  return queueList(c, service, listed, (job, estimated) => ({
    ...presentQueued(job, estimated, describeQueued(job, external)),
    ...jobLinks(service, job),
    column: dialect.columnName,
    column_number: dialect.column + 1,
    header: dialect.header !== null,
    encoding: dialect.encoding,
    sheet: content.workbook && sanitizeText(content.workbook.sheet, 80),
    rows: job.total,
    ...presentAddressColumns(dialect),
    external_source: findExternalSource(dialect),
    // Other rows have no result when the job is queued.
    kept_external: job.done,
  }))
}

/** The results of other services that a file has, and whether its rows keep them. */
export type ExternalOptions = {
  readonly isKept: boolean
  /** Null if no row keeps a result. */
  readonly reader: ExternalReader | null
}

/** Reads the options about results of other services. Throws ApiError. */
export function readExternalOptions(
  { clock, settings }: Pick<BatchDeps, 'clock' | 'settings'>,
  dialect: ListDialect,
  { keep_external, external_date: date }: FileOptions,
): ExternalOptions {
  const isKept = keep_external ?? false
  const exportedAt = date === undefined || date === '' ? null : parseCheckTime(date)
  if (date !== undefined && date !== '') {
    const given = JSON.stringify(sanitizeText(date, 40))
    if (exportedAt === null)
      throw invalidRequest(`"external_date" is ${given}; it must be a date such as 2026-03-01.`)
    if (!isKept)
      throw invalidRequest(`"external_date" is ${given}, but "keep_external" is not true.`)
  }
  const ages = { ...settings.externalAges, exportedAt, now: clock.now() }
  return { isKept, reader: isKept ? createExternalReader(dialect, ages) : null }
}

function describeQueued({ id, done }: Job, { isKept, reader }: ExternalOptions): string {
  const queued = `File queued. Check GET /v1/jobs/${id}`
  return isKept ? `${queued}. ${describeExternal(reader, done, '"external_date"')}` : queued
}

/** Presents which columns of a list hold addresses, and whether all of them are verified. */
export const presentAddressColumns = ({
  addressColumns,
  hasSeveral,
  allAddresses,
}: ListDialect) => ({
  address_columns: (addressColumns ?? []).map(column => column + 1),
  has_several: hasSeveral ?? false,
  all_addresses: allAddresses !== undefined,
})

/** Adds the cells, which are returned with the results. */
async function* storedRows(
  path: string,
  dialect: ListDialect,
  reader: ExternalReader | null,
): AsyncGenerator<readonly Row[]> {
  for await (const batch of readRows(path, dialect)) {
    yield batch.map(({ text, cells }) => ({
      text,
      cells: JSON.stringify(cells),
      external: reader?.read(cells) ?? null,
    }))
  }
}

/**
 * Detects the dialect of an uploaded list and its address column. Throws if the column is not
 * found.
 */
async function findDialect(upload: TextUpload): Promise<ListDialect> {
  const dialect = await detected(upload, detectDialect)
  checkHeader(dialect)
  return dialect
}

function checkHeader({ header }: ListDialect): void {
  const length = header?.reduce((sum, name) => sum + name.length, 0) ?? 0
  if (length <= HEADER_LENGTH_MAX) return
  const [given, max] = [length, HEADER_LENGTH_MAX].map(formatNumber)
  const message = `The names of the columns have ${given} characters; a file may have ${max}. Shorten them, or remove columns.`
  throw invalidRequest(message)
}

/** All names of columns together. They are stored with the job, and read with each list of jobs. */
const HEADER_LENGTH_MAX = 128 * 1024

/** Detects the columns of an uploaded list. The address column may be missing. */
export async function findColumns(upload: TextUpload) {
  const found = await detected(upload, detectColumns)
  checkHeader(found.dialect)
  return found
}

/** Yields the rows of an uploaded list in chunks. */
export async function* readRows(
  path: string,
  dialect: ListDialect,
): AsyncGenerator<readonly ListRow[]> {
  const isCopied = dialect.allAddresses === 'columns'
  let count = 0
  let length = 0
  for await (const batch of readList(createReadStream(path), dialect)) {
    count += batch.length
    if (count > FILE_ROWS_MAX) throw requestError('file_rows_exceeded', { max: FILE_ROWS_MAX })
    if (count * dialect.width > FILE_CELLS_MAX) {
      const columns = dialect.width
      const rows = Math.floor(FILE_CELLS_MAX / columns)
      throw requestError('file_cells_exceeded', { columns, rows })
    }
    for (const { cells } of isCopied ? batch : []) {
      for (const cell of cells) length += cell.length
    }
    if (length > COPIES_LENGTH_MAX)
      throw requestError('file_copies_exceeded', { size: formatMebibytes(COPIES_LENGTH_MAX) })
    yield batch
  }
}

/**
 * Maximum length of all cells if each address of a row has a copy of them, in UTF-16 units: as
 * much as a compressed list may have as text.
 */
const COPIES_LENGTH_MAX = EXPANDED_BYTES_MAX

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
  const { column, encoding, header, all_addresses: allAddresses } = options
  return detect(head, {
    complete,
    words: WORDS,
    ...(column === undefined || column === '' ? {} : { column: parseColumn(String(column)) }),
    ...(encoding === undefined || encoding === '' ? {} : { encoding }),
    ...(header == null ? {} : { header }),
    ...(allAddresses == null ? {} : { allAddresses }),
    ...content.known,
  })
}

/** Digits are the number of a column; anything else is its name. */
const parseColumn = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : text)

/**
 * Cells of a file with those that its results add to short rows: a million rows of 100 columns. All
 * cells of an uncompressed file are fewer, because each takes a byte of its 100 MiB.
 */
const FILE_CELLS_MAX = 100_000_000
