import { isFault, parseAddress } from '../../address/address.ts'
import type { ListDialect } from './dialect.ts'

/** Makes the lines of the result. */
export type RowWriter = {
  /** The line of column names, with the byte order mark before it if the list had one. */
  header(): string
  /** The original cells in order, then the added values. */
  row(cells: readonly string[], values: readonly Value[]): string
}

/**
 * Writes a list back in its own dialect (as UTF-8) with columns added. The original cells keep their
 * text. Added cells that a spreadsheet would run as a formula get a leading `'`, unless `raw` is set
 * or the cell is a valid address under `addressColumn` (`ev_email`). A list without a header gets one: `email` for the
 * addresses, `column_N` for the others, so that the added columns can be told apart.
 */
export function createRowWriter(
  dialect: ListDialect,
  added: readonly string[],
  options: { raw?: boolean; addressColumn?: string } = {},
): RowWriter {
  const { raw = false, addressColumn = 'ev_email' } = options
  const { delimiter, newline, width } = dialect
  const special = new RegExp(`["\\r\\n${delimiter}]|^\\uFEFF`)
  const quote = (text: string) => (special.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  const value = (given: Value, column: string | undefined) => {
    if (typeof given !== 'string') return given === null ? '' : String(given)
    const isSafe = raw || !isFormula(given) || (column === addressColumn && isAddress(given))
    return quote(isSafe ? given : `'${given}`)
  }
  // One array for all rows: a million of them would be most of the garbage of a run.
  const texts: string[] = []
  const line = (cells: readonly string[], ours: readonly Value[]) => {
    texts.length = 0
    for (let i = 0; i < width; i += 1) texts.push(quote(cells[i] ?? ''))
    for (let i = 0; i < ours.length; i += 1) texts.push(value(ours[i] ?? null, added[i]))
    // What a ragged row has beyond all others stands last, or it would push our columns aside.
    for (let i = width; i < cells.length; i += 1) texts.push(quote(cells[i] ?? ''))
    const text = texts.join(delimiter)
    // A lone blank cell would read back as a blank line.
    return (texts.length === 1 && text.trim() === '' ? `"${text}"` : text) + newline
  }
  return {
    header: () => (dialect.bom ? '\uFEFF' : '') + line(columnNames(dialect), added),
    row: line,
  }
}

type Value = string | number | boolean | null

const columnNames = ({ header, width, column }: ListDialect) =>
  header ?? Array.from({ length: width }, (_, i) => (i === column ? 'email' : `column_${i + 1}`))

/** What spreadsheets take for a formula, or strip to find one (ASVS 1.2.10), full-width forms included. */
const FORMULA_START = /^[=+\-@\t\r\n\0＝＋－＠]/

const isFormula = (text: string) => FORMULA_START.test(text)

const isAddress = (text: string) => !isFault(parseAddress(text))
