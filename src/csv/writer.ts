import { type Options, stringify } from 'csv-stringify/sync'
import type { ListDialect } from './dialect.ts'

/** A row of the output: its original cells in order, then the added values. */
export type OutputRow = { readonly cells: readonly string[]; readonly values: readonly Value[] }

/** Formats the lines of the output. */
export type RowWriter = {
  /** Returns the header line, preceded by the byte order mark if the list had one. */
  header(): string
  /** Returns a line for each row. */
  rows(rows: readonly OutputRow[]): string[]
}

type WriterOptions = {
  /** Whether cells that a spreadsheet would run as formulas stay unchanged. */
  readonly raw?: boolean
  /** Names of the added columns whose texts are words and times of ev, which are never quoted. */
  readonly words?: ReadonlySet<string>
}

/**
 * Writes rows in the dialect of the list (as UTF-8) with columns added. Cells keep their text with
 * two exceptions: a cell that a spreadsheet would run as a formula gets a leading `'` unless `raw`
 * is set, and NUL is removed. A list without a header gets one (`email` for the address column,
 * `column_N` for the others) so that the added columns can be identified.
 */
export function createRowWriter(
  dialect: ListDialect,
  added: readonly string[],
  { raw = false, words = NO_WORDS }: WriterOptions = {},
): RowWriter {
  const { width, delimiter, newline } = dialect
  const isWord = added.map(name => words.has(name))
  const isText = (value: Value, column: number): value is string =>
    typeof value === 'string' && isWord[column] !== true
  const options: Options = {
    delimiter,
    record_delimiter: RECORD_END,
    // Otherwise cells with line breaks would be unquoted.
    quote_record_delimiter: true,
    cast: { string: raw ? removeNul : escapeFormula },
    quoted_match: BYTE_ORDER_MARK,
  }
  const writeRows = (rows: readonly OutputRow[]): string[] => {
    const batch = new CellBatch()
    for (const { cells, values } of rows) {
      if (width > 0 && cells.length > 0) batch.addCells(cells.slice(0, width))
      for (let i = 0; i < values.length; i++) {
        const value = values[i] ?? null
        if (isText(value, i)) batch.addText(value)
      }
      if (cells.length > width) batch.addCells(cells.slice(width))
    }
    batch.format(options)
    return rows.map(({ cells, values }) => {
      let line = width > 0 && cells.length > 0 ? batch.next() : ''
      // A row without cells has one empty cell already.
      const missing = width - Math.max(1, cells.length)
      if (missing > 0) line += delimiter.repeat(missing)
      for (let i = 0; i < values.length; i++) {
        const value = values[i] ?? null
        if (width > 0 || i > 0) line += delimiter
        line += isText(value, i) ? batch.next() : String(value ?? '')
      }
      if (cells.length > width) {
        if (width > 0 || values.length > 0) line += delimiter
        line += batch.next()
      }
      const isSingle = Math.max(width, cells.length) + values.length === 1
      return `${isSingle && BLANK.test(line) ? `"${line}"` : line}${newline}`
    })
  }
  return {
    header() {
      const [line = ''] = writeRows([{ cells: columnNames(dialect), values: added }])
      return (dialect.bom ? '\uFEFF' : '') + line
    },
    rows: writeRows,
  }
}

const NO_WORDS: ReadonlySet<string> = new Set()

/** Ends a record between csv-stringify and `CellBatch`; no cell contains it, as NUL is removed. */
const RECORD_END = '\0'

/** The cells of a batch of rows, which csv-stringify formats in one call. */
class CellBatch {
  readonly #records: (readonly string[])[] = []
  /** Index of the record of a text: a row repeats its address, and rows repeat their domains. */
  readonly #recordOfText = new Map<string, number>()
  /** Indexes of records in the order of `next`. */
  readonly #order: number[] = []
  #formatted: readonly string[] = []
  #taken = 0

  /** Adds adjacent cells of a row. */
  addCells(cells: readonly string[]): void {
    this.#order.push(this.#records.push(cells) - 1)
  }

  /** Adds a cell by itself. */
  addText(text: string): void {
    let index = this.#recordOfText.get(text)
    if (index === undefined) {
      index = this.#records.push([text]) - 1
      this.#recordOfText.set(text, index)
    }
    this.#order.push(index)
  }

  /** Call it once, before `next`. */
  format(options: Options): void {
    this.#formatted = stringify([...this.#records], options).split(RECORD_END)
  }

  /** Returns the text of what was added next. */
  next(): string {
    return this.#formatted[this.#order[this.#taken++] ?? 0] ?? ''
  }
}

export type Value = string | number | boolean | null

/** Returns the original cells in order, then the added values. */
export function arrangeRow(
  width: number,
  cells: readonly Value[],
  values: readonly Value[],
): Value[] {
  const row = cells.slice(0, width)
  while (row.length < width) row.push('')
  row.push(...values)
  // Extra cells of a ragged row come last, or they would shift the added columns.
  for (let i = width; i < cells.length; i += 1) row.push(cells[i] ?? '')
  return row
}

/** Returns the names of the original columns in the output. */
export const columnNames = ({ header, width, column }: ListDialect): readonly string[] =>
  header ?? Array.from({ length: width }, (_, i) => (i === column ? 'email' : `column_${i + 1}`))

/**
 * A cell that starts with this is quoted: at the start of a file it would be read as a byte order
 * mark.
 */
const BYTE_ORDER_MARK = /^\uFEFF/
/** A line of one blank cell is quoted, or it would be read back as a blank line. */
const BLANK = /^\s*$/

/**
 * Characters that start a formula in spreadsheets, including full-width forms, also behind spaces
 * and invisible characters, which spreadsheets strip (ASVS 1.2.10). A leading tab or line break is
 * never left alone.
 */
const FORMULA_START = /^(?:[\t\r\n]|[\s\p{Cc}\p{Cf}]*[=+\-@＝＋－＠])/u
/** Signed numbers and placeholder dashes are not formulas. */
const SIGNED_NUMBER = /^[^\S\t\r\n]*(?:[+-][\d\s.,]*|-+\s*)$/

const removeNul = (text: string) => (text.includes('\0') ? text.replaceAll('\0', '') : text)

function escapeFormula(cell: string): string {
  const text = removeNul(cell)
  return isFormula(text) ? `'${text}` : text
}

/** Returns true if a spreadsheet would run a cell of a CSV file as a formula. */
export const isFormula = (text: string) => FORMULA_START.test(text) && !SIGNED_NUMBER.test(text)
