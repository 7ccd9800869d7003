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
import { type Result, toClass } from '../../engine/verdict/verdict.ts'
import { createSheetWriter } from '../../formats/sheet-writer.ts'
import type { Vocabulary } from '../../formats/vocabulary/names.ts'
import { getVocabularyColumns } from '../../formats/vocabulary/vocabulary.ts'

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
  /** The service whose columns and words are written; those of ev if left out. Not for JSON. */
  readonly vocabulary?: Vocabulary | undefined
}

/** Returns the writer of a format. */
export function rowText(format: Format, dialect: ListDialect, options: RowOptions): RowText {
  const { policy } = options
  if (format === 'csv') return csvText(dialect, options)
  if (format === 'xlsx') return sheetText(dialect, options)
  const toText = toJson(createRowObject(dialect), policy)
  return format === 'json'
    ? { begin: '[\n', between: ',\n', end: '\n]\n', rows: rows => rows.map(toText) }
    : { begin: '', between: '', end: '', rows: rows => rows.map(row => `${toText(row)}\n`) }
}

function csvText(dialect: ListDialect, options: RowOptions): RowText {
  const { names, words, toOutputRow } = addedColumns(dialect, options)
  const writer = createRowWriter(dialect, names, { raw: options.raw, words })
  const rows = (rows: readonly RowResult[]) => writer.rows(rows.map(toOutputRow))
  return { begin: writer.header(), between: '', end: '', rows }
}

/** The rows of a worksheet; the sink puts them into a workbook. */
function sheetText(dialect: ListDialect, options: RowOptions): RowText {
  const { names, toOutputRow } = addedColumns(dialect, options)
  const writer = createSheetWriter(dialect, names)
  const rows = (rows: readonly RowResult[]) => writer.rows(rows.map(toOutputRow))
  return { begin: writer.header(), between: '', end: writer.end, rows }
}

type AddedColumns = {
  readonly names: readonly string[]
  /** See `createRowWriter`. */
  readonly words: ReadonlySet<string>
  readonly toOutputRow: (row: RowResult) => OutputRow
}

/** Returns the columns that follow those of the list. */
function addedColumns(dialect: ListDialect, { policy, vocabulary }: RowOptions): AddedColumns {
  if (vocabulary === undefined) {
    const toOutputRow = ({ row, result, action }: RowResult) => ({
      cells: row.cells,
      values: toListColumns(columnValues(result, action ?? decide(result, policy).action)),
    })
    return { names: LIST_COLUMNS, words: WORD_COLUMNS, toOutputRow }
  }
  const { names, values } = getVocabularyColumns(vocabulary, dialect)
  const toOutputRow = ({ row, result }: RowResult) => ({
    cells: row.cells,
    values: values({ email: result.email, class: toClass(result.verdict), result }),
  })
  return { names, words: NO_WORDS, toOutputRow }
}

const NO_WORDS: ReadonlySet<string> = new Set()

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
