import { type Options, stringify } from 'csv-stringify/sync'
import type { ListDialect } from './dialect.ts'

/** Formats the lines of the output. */
export type RowWriter = {
  /** Returns the header line, preceded by the byte order mark if the list had one. */
  header(): string
  /** Returns a line with the original cells in order, then the added values. */
  row(cells: readonly string[], values: readonly Value[]): string
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
  { raw = false }: { raw?: boolean } = {},
): RowWriter {
  const { width } = dialect
  const sanitize = raw ? removeNul : escapeFormula
  const options: Options = {
    delimiter: dialect.delimiter,
    record_delimiter: dialect.newline,
    // Otherwise cells with one of the two other line breaks would be unquoted.
    quote_record_delimiter: true,
    cast: { string: sanitize, boolean: String },
    quoted_match: BYTE_ORDER_MARK,
  }
  const format = (row: readonly Value[], more?: Options) =>
    stringify([row], more === undefined ? options : { ...options, ...more })
  const line = (cells: readonly string[], values: readonly Value[]) => {
    const missing = width - cells.length
    if (missing > PADDING_FORMATTED_MAX && cells.length > 0 && values.length > 0) {
      const padding = dialect.delimiter.repeat(missing + 1)
      return format(cells, { eof: false }) + padding + format(values)
    }
    const row = arrangeRow(width, cells, values)
    return format(row, row.length === 1 ? SINGLE_CELL : undefined)
  }
  return {
    header: () => (dialect.bom ? '\uFEFF' : '') + line(columnNames(dialect), added),
    row: line,
  }
}

/**
 * Cells that are added to a short row are formatted like others up to this number. Formatting
 * thousands of them for each row would take most of the time of a download.
 */
const PADDING_FORMATTED_MAX = 16

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
/** A single blank cell is quoted, or it would be read back as a blank line. */
const SINGLE_CELL: Options = { quoted_empty: true, quoted_match: /^\s*$|^\uFEFF/ }

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
