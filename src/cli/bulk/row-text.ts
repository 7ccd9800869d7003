import {
  createRowObject,
  createRowWriter,
  type ListDialect,
  type ListRow,
  type OutputRow,
} from '../../csv/csv.ts'
import { type Action, type ActionPolicy, decide } from '../../engine/verdict/action.ts'
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
export type RowResult = {
  readonly row: ListRow
  readonly result: Result
  /** The action that a service decided; otherwise the policy decides. */
  readonly action?: Action
}

type RowOptions = {
  /** Turns off formula escaping, which only CSV has. */
  readonly raw: boolean
  readonly policy: ActionPolicy
}

/** Returns the writer of a format. */
export function rowText(format: Format, dialect: ListDialect, options: RowOptions): RowText {
  const { policy } = options
  if (format === 'csv') return csvText(dialect, options)
  if (format === 'xlsx') return sheetText(dialect, policy)
  const toText = toJson(createRowObject(dialect), policy)
  return format === 'json'
    ? { begin: '[\n', between: ',\n', end: '\n]\n', rows: rows => rows.map(toText) }
    : { begin: '', between: '', end: '', rows: rows => rows.map(row => `${toText(row)}\n`) }
}

function csvText(dialect: ListDialect, { raw, policy }: RowOptions): RowText {
  const writer = createRowWriter(dialect, LIST_COLUMNS, { raw, words: WORD_COLUMNS })
  const rows = (rows: readonly RowResult[]) =>
    writer.rows(rows.map(row => toOutputRow(row, policy)))
  return { begin: writer.header(), between: '', end: '', rows }
}

/** The rows of a worksheet; the sink puts them into a workbook. */
function sheetText(dialect: ListDialect, policy: ActionPolicy): RowText {
  const writer = createSheetWriter(dialect, LIST_COLUMNS)
  const rows = (rows: readonly RowResult[]) =>
    writer.rows(rows.map(row => toOutputRow(row, policy)))
  return { begin: writer.header(), between: '', end: writer.end, rows }
}

const toOutputRow = ({ row, result, action }: RowResult, policy: ActionPolicy): OutputRow => ({
  cells: row.cells,
  values: toListColumns(columnValues(result, action ?? decide(result, policy).action)),
})

const toJson =
  (input: (cells: readonly string[]) => string, policy: ActionPolicy) =>
  ({ row: { row, cells }, result }: RowResult): string => {
    const shown = wellFormedJson(presentResult(result, ['flags', 'evidence'], policy))
    return `{"row":${row},"input":${input(cells)},"result":${shown}}`
  }

/** Replaces lone surrogates, which most JSON parsers reject even when escaped (RFC 7493 §2.1). */
function wellFormedJson(value: unknown): string {
  const text = JSON.stringify(value)
  return text.includes('\\ud') ? JSON.stringify(value, wellFormed) : text
}

const wellFormed = (_key: string, value: unknown) =>
  typeof value === 'string' ? value.toWellFormed() : value
