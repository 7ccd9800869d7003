import { createRowObject, createRowWriter, type ListDialect, type ListRow } from '../../csv/csv.ts'
import {
  columnValues,
  LIST_COLUMNS,
  presentResult,
  toListColumns,
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
  row(row: ListRow, result: Result): string
}

/** Returns the writer of a format. `raw` turns off formula escaping, which only CSV has. */
export function rowText(format: Format, dialect: ListDialect, options: { raw: boolean }): RowText {
  if (format === 'csv') return csvText(dialect, options)
  if (format === 'xlsx') return sheetText(dialect)
  const row = jsonRow(dialect)
  return format === 'json'
    ? { begin: '[\n', between: ',\n', end: '\n]\n', row }
    : { begin: '', between: '', end: '', row: (...args) => `${row(...args)}\n` }
}

function csvText(dialect: ListDialect, options: { raw: boolean }): RowText {
  const writer = createRowWriter(dialect, LIST_COLUMNS, options)
  return {
    begin: writer.header(),
    between: '',
    end: '',
    row: ({ cells }, result) => writer.row(cells, toListColumns(columnValues(result))),
  }
}

/** The rows of a worksheet; the sink puts them into a workbook. */
function sheetText(dialect: ListDialect): RowText {
  const writer = createSheetWriter(dialect, LIST_COLUMNS)
  return {
    begin: writer.header(),
    between: '',
    end: writer.end,
    row: ({ cells }, result) => writer.row(cells, toListColumns(columnValues(result))),
  }
}

function jsonRow(dialect: ListDialect): RowText['row'] {
  const input = createRowObject(dialect)
  return ({ row, cells }, result) => {
    const shown = wellFormedJson(presentResult(result, ['flags', 'evidence']))
    return `{"row":${row},"input":${input(cells)},"result":${shown}}`
  }
}

/** Replaces lone surrogates, which most JSON parsers reject even when escaped (RFC 7493 §2.1). */
function wellFormedJson(value: unknown): string {
  const text = JSON.stringify(value)
  return text.includes('\\ud') ? JSON.stringify(value, wellFormed) : text
}

const wellFormed = (_key: string, value: unknown) =>
  typeof value === 'string' ? value.toWellFormed() : value
