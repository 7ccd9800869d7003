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
  const { delimiter, newline, width } = dialect
  const special = new RegExp(`["\\r\\n${delimiter}]|^\\uFEFF`)
  const quote = (text: string) => (special.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  const cell = (given: string) => {
    const text = given.includes('\0') ? given.replaceAll('\0', '') : given
    return quote(raw || !isFormula(text) ? text : `'${text}`)
  }
  const value = (given: Value) => {
    if (typeof given === 'string') return cell(given)
    return given === null ? '' : String(given)
  }
  // One array for all rows: a million of them would be most of the garbage of a run.
  const texts: string[] = []
  const line = (cells: readonly string[], ours: readonly Value[]) => {
    texts.length = 0
    for (let i = 0; i < width; i += 1) texts.push(cell(cells[i] ?? ''))
    for (let i = 0; i < ours.length; i += 1) texts.push(value(ours[i] ?? null))
    // What a ragged row has beyond all others stands last, or it would push our columns aside.
    for (let i = width; i < cells.length; i += 1) texts.push(cell(cells[i] ?? ''))
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
const FORMULA_START = /^[=+\-@\t\r\n＝＋－＠]/
/** A number with its sign, and dashes that stand for nothing: neither is run. */
const SIGNED_NUMBER = /^(?:[+-][\d\s.,]*|-+)$/

const isFormula = (text: string) => FORMULA_START.test(text) && !SIGNED_NUMBER.test(text)
