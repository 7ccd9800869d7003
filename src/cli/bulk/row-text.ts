import { createRowObject, createRowWriter, type ListDialect, type ListRow } from '../../csv/csv.ts'
import { LIST_COLUMNS, listValues, presentResult } from '../../engine/verdict/present-result.ts'
import type { Result } from '../../engine/verdict/verdict.ts'

export type Format = 'csv' | 'ndjson' | 'json'

/** How rows are written: the same for every file of an output. */
export type RowText = {
  /** Stands before the first row, even if there is none. */
  readonly begin: string
  readonly between: string
  readonly end: string
  row(row: ListRow, result: Result): string
}

/** Gives the way that a format asks for; `raw` leaves out the guard against formulas, which only CSV has. */
export function rowText(format: Format, dialect: ListDialect, options: { raw: boolean }): RowText {
  if (format === 'csv') return csvText(dialect, options)
  const row = jsonRow(dialect)
  return format === 'json'
    ? { begin: '[\n', between: ',\n', end: '\n]\n', row }
    : { begin: '', between: '', end: '', row: (...given) => `${row(...given)}\n` }
}

function csvText(dialect: ListDialect, options: { raw: boolean }): RowText {
  const writer = createRowWriter(dialect, LIST_COLUMNS, options)
  return {
    begin: writer.header(),
    between: '',
    end: '',
    row: ({ cells }, result) => writer.row(cells, listValues(result)),
  }
}

function jsonRow(dialect: ListDialect): RowText['row'] {
  const input = createRowObject(dialect)
  return ({ row, cells }, result) => {
    const shown = wellFormedJson(presentResult(result, ['flags', 'evidence']))
    return `{"row":${row},"input":${input(cells)},"result":${shown}}`
  }
}

/** Half a surrogate pair is escaped by JSON.stringify, and then refused by most other readers (RFC 7493 §2.1). */
function wellFormedJson(value: unknown): string {
  const text = JSON.stringify(value)
  return text.includes('\\ud') ? JSON.stringify(value, wellFormed) : text
}

const wellFormed = (_key: string, value: unknown) =>
  typeof value === 'string' ? value.toWellFormed() : value
