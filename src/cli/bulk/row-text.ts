import {
  createRowObject,
  createRowWriter,
  type ListDialect,
  type ListRow,
  type OutputRow,
} from '../../csv/csv.ts'
import {
  columnValues,
  LIST_COLUMNS,
  presentResult,
  toListColumns,
  WORD_COLUMNS,
} from '../../engine/verdict/present-result.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import { createSheetWriter } from '../../formats/sheet-writer.ts'

export type Format = 'csv' | 'xlsx' | 'ndjson' | 'json'

/** Format of rows, the same for every file of an output. */
export type RowText = {
  /** Text before the first row, also if there are no rows. */
  readonly begin: string
  readonly between: string
  readonly end: string
  /** Returns the text of each row. */
  rows(rows: readonly RowResult[]): string[]
}

/** A row of a list with its result. */
export type RowResult = { readonly row: ListRow; readonly result: Result }

/** Returns the writer of a format. `raw` turns off formula escaping, which only CSV has. */
export function rowText(format: Format, dialect: ListDialect, options: { raw: boolean }): RowText {
  if (format === 'csv') return csvText(dialect, options)
  if (format === 'xlsx') return sheetText(dialect)
  const input = createRowObject(dialect)
  return format === 'json'
    ? { begin: '[\n', between: ',\n', end: '\n]\n', rows: rows => rows.map(toJson(input)) }
    : { begin: '', between: '', end: '', rows: rows => rows.map(row => `${toJson(input)(row)}\n`) }
}

function csvText(dialect: ListDialect, { raw }: { raw: boolean }): RowText {
  const writer = createRowWriter(dialect, LIST_COLUMNS, { raw, words: WORD_COLUMNS })
  const rows = (rows: readonly RowResult[]) => writer.rows(rows.map(toOutputRow))
  return { begin: writer.header(), between: '', end: '', rows }
}

/** The rows of a worksheet; the sink puts them into a workbook. */
function sheetText(dialect: ListDialect): RowText {
  const writer = createSheetWriter(dialect, LIST_COLUMNS)
  const rows = (rows: readonly RowResult[]) => writer.rows(rows.map(toOutputRow))
  return { begin: writer.header(), between: '', end: writer.end, rows }
}

const toOutputRow = ({ row, result }: RowResult): OutputRow => ({
  cells: row.cells,
  values: toListColumns(columnValues(result)),
})

const toJson =
  (input: (cells: readonly string[]) => string) =>
  ({ row: { row, cells }, result }: RowResult): string => {
    const shown = wellFormedJson(presentResult(result, ['flags', 'evidence']))
    return `{"row":${row},"input":${input(cells)},"result":${shown}}`
  }

/** Replaces lone surrogates, which most JSON parsers reject even when escaped (RFC 7493 §2.1). */
function wellFormedJson(value: unknown): string {
  const text = JSON.stringify(value)
  return text.includes('\\ud') ? JSON.stringify(value, wellFormed) : text
}

const wellFormed = (_key: string, value: unknown) =>
  typeof value === 'string' ? value.toWellFormed() : value
