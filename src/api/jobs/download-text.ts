import { createRowObject, createRowWriter, type ListDialect } from '../../csv/csv.ts'
import type { Job } from '../../jobs/job-store.ts'
import type { JobRow } from './job-row.ts'
import { ROW_COLUMNS, rowJson, rowValues } from './row-view.ts'

export const FORMATS = ['csv', 'json', 'ndjson'] as const
export type Format = (typeof FORMATS)[number]

/** How a download is written. */
export type DownloadText = {
  /** Stands before the first row, even if there is none. */
  readonly begin: string
  readonly between: string
  readonly end: string
  row(row: JobRow): string
}

export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  csv: 'text/csv; charset=utf-8',
  json: 'application/json',
  ndjson: 'application/x-ndjson',
}

/** `raw` leaves out the guard against formulas, which only CSV has. */
export function downloadText(job: Job, format: Format, options: { raw: boolean }): DownloadText {
  const dialect = dialectOf(job)
  if (format === 'csv') {
    return dialect === null ? listCsv(job, options) : fileCsv(dialect, options)
  }
  const input = dialect === null ? null : createRowObject(dialect)
  const row = (row: JobRow) =>
    rowJson(row, row.cells === null ? null : (input?.(row.cells) ?? null))
  return format === 'json'
    ? { begin: '[\n', between: ',\n', end: '\n]\n', row }
    : { begin: '', between: '', end: '', row: given => `${row(given)}\n` }
}

/** The columns of the file as they came, ours behind them. */
function fileCsv(dialect: ListDialect, options: { raw: boolean }): DownloadText {
  const columns = ROW_COLUMNS.map(name => `ev_${name}`)
  const writer = createRowWriter(dialect, columns, options)
  const row = (row: JobRow) => writer.row(row.cells ?? [], rowValues(row))
  return { begin: writer.header(), between: '', end: '', row }
}

/** RFC 4180. Where addresses came with IDs, these stand last. */
function listCsv(job: Job, { raw }: { raw: boolean }): DownloadText {
  const hasIds = sourceOf(job).ids === true
  const columns = [...ROW_COLUMNS, ...(hasIds ? ['id'] : [])]
  const writer = createRowWriter(NO_COLUMNS, columns, { raw })
  const row = (row: JobRow) => writer.row([], [...rowValues(row), ...(hasIds ? [row.id] : [])])
  return { begin: writer.header(), between: '', end: '', row }
}

const NO_COLUMNS: ListDialect = {
  ...{ encoding: 'utf-8', delimiter: ',', newline: '\r\n', bom: false },
  ...{ header: [], column: 0, columnName: null, skipLines: 0, width: 0 },
}

/** How the uploaded file was written; null: it was no file. */
const dialectOf = (job: Job): ListDialect | null => sourceOf(job).dialect ?? null

type Source = { readonly dialect?: ListDialect | null; readonly ids?: boolean }

const sourceOf = ({ source }: Job): Source => JSON.parse(source) as Source
