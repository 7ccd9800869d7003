import { type Options, stringify } from 'csv-stringify/sync'
import type { ListDialect } from './dialect.ts'

/** Makes the lines of the result. */
export type RowWriter = {
  /** The line of column names, with the byte order mark before it if the list had one. */
  header(): string
  /** The original cells in order, then the added values. */
  row(cells: readonly string[], values: readonly Value[]): string
}

/**
 * Writes a list back in its own dialect (as UTF-8) with columns added. Cells keep their text, but for two things: a
 * cell that a spreadsheet would run as a formula gets a leading `'`, unless `raw` is set, and NUL is left out. A list
 * without a header gets one: `email` for the addresses, `column_N` for the others, so that the added columns can be
 * told apart.
 */
export function createRowWriter(
  dialect: ListDialect,
  added: readonly string[],
  { raw = false }: { raw?: boolean } = {},
): RowWriter {
  const { width } = dialect
  const guard = raw ? withoutNul : guarded
  const options: Options = {
    delimiter: dialect.delimiter,
    record_delimiter: dialect.newline,
    // Without it, the two other line breaks would stand in unquoted cells.
    quote_record_delimiter: true,
    cast: { string: guard, boolean: String },
    quoted_match: BYTE_ORDER_MARK,
  }
  const line = (cells: readonly string[], values: readonly Value[]) => {
    const row: Value[] = cells.slice(0, width)
    while (row.length < width) row.push('')
    row.push(...values)
    // What a ragged row has beyond all others stands last, or it would push our columns aside.
    for (let i = width; i < cells.length; i += 1) row.push(cells[i] ?? '')
    return stringify([row], row.length === 1 ? { ...options, ...LONE_CELL } : options)
  }
  return {
    header: () => (dialect.bom ? '\uFEFF' : '') + line(columnNames(dialect), added),
    row: line,
  }
}

type Value = string | number | boolean | null

const columnNames = ({ header, width, column }: ListDialect) =>
  header ?? Array.from({ length: width }, (_, i) => (i === column ? 'email' : `column_${i + 1}`))

/** A mark at the beginning of a file would be read as none of its text. */
const BYTE_ORDER_MARK = /^\uFEFF/
/** A lone blank cell is quoted: it would read back as a blank line. */
const LONE_CELL: Options = { quoted_empty: true, quoted_match: /^\s*$|^\uFEFF/ }

/** What spreadsheets take for a formula, or strip to find one (ASVS 1.2.10), full-width forms included. */
const FORMULA_START = /^[=+\-@\t\r\n＝＋－＠]/
/** A number with its sign, and dashes that stand for nothing: neither is run. */
const SIGNED_NUMBER = /^(?:[+-][\d\s.,]*|-+)$/

const withoutNul = (text: string) => (text.includes('\0') ? text.replaceAll('\0', '') : text)

function guarded(given: string): string {
  const text = withoutNul(given)
  return isFormula(text) ? `'${text}` : text
}

const isFormula = (text: string) => FORMULA_START.test(text) && !SIGNED_NUMBER.test(text)
