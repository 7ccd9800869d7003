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
  const toSafe = raw ? removeNul : escapeFormula
  const quoted = new RegExp(`["\\r\\n${delimiter}]|^${BYTE_ORDER_MARK}`)
  const writeRows = (rows: readonly OutputRow[]): string[] => {
    const batch = new CellBatch(quoted)
    const ends = rows.map(({ cells, values }) => {
      for (let i = 0; i < cells.length && i < width; i++) batch.add(toSafe(cells[i] ?? ''))
      if (cells.length < width) batch.addEmpty(width - cells.length, delimiter)
      for (let i = 0; i < values.length; i++) {
        const value = values[i] ?? null
        if (typeof value === 'string' && isWord[i] !== true) batch.add(toSafe(value))
        else batch.addPlain(String(value ?? ''))
      }
      for (let i = width; i < cells.length; i++) batch.add(toSafe(cells[i] ?? ''))
      return batch.size
    })
    const texts = batch.format()
    return rows.map(({ cells, values }, row) => {
      const line = texts.slice(ends[row - 1] ?? 0, ends[row]).join(delimiter)
      const isSingle = Math.max(width, cells.length) + values.length === 1
      return `${isSingle && BLANK.test(line) ? `"${line}"` : line}${newline}`
    })
  }
  return {
    header() {
      const [line = ''] = writeRows([{ cells: columnNames(dialect), values: added }])
      return (dialect.bom ? BYTE_ORDER_MARK : '') + line
    },
    rows: writeRows,
  }
}

const NO_WORDS: ReadonlySet<string> = new Set()

/** A cell that starts with it is quoted: a reader drops it at the start of a file. */
const BYTE_ORDER_MARK = '\uFEFF'

/** The cells of a batch of rows. csv-stringify formats those to quote in one call. */
class CellBatch {
  readonly #quoted: RegExp
  readonly #texts: string[] = []
  /** Indexes of the texts to quote. */
  readonly #toQuote: number[] = []

  /** `quoted` matches what must be quoted. */
  constructor(quoted: RegExp) {
    this.#quoted = quoted
  }

  get size(): number {
    return this.#texts.length
  }

  add(text: string): void {
    if (this.#quoted.test(text)) this.#toQuote.push(this.#texts.length)
    this.#texts.push(text)
  }

  /** Adds a text that needs no quotes. */
  addPlain(text: string): void {
    this.#texts.push(text)
  }

  /** Adds as many empty cells, as one text. */
  addEmpty(count: number, delimiter: string): void {
    this.#texts.push(delimiter.repeat(count - 1))
  }

  /** Returns the texts as they are written. Call it once, after all cells are added. */
  format(): readonly string[] {
    const records = this.#toQuote.map(index => [this.#texts[index]])
    const texts = records.length === 0 ? [] : stringify(records, QUOTE_ALL).split(RECORD_END)
    for (const [i, index] of this.#toQuote.entries()) this.#texts[index] = texts[i] ?? ''
    return this.#texts
  }
}

/** Ends a record between csv-stringify and `CellBatch`; no cell contains it, as NUL is removed. */
const RECORD_END = '\0'
const QUOTE_ALL: Options = { quoted: true, record_delimiter: RECORD_END }

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
