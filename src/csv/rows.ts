import { hasAt, isBlank, splitAddresses, unwrapItem } from './column.ts'
import type { ListDialect } from './dialect.ts'
import { nameHint } from './header-names.ts'
import type { ListRecord } from './record.ts'

/** A data row of a list; a row with several addresses is one for each, if all are verified. */
export type ListRow = {
  /** Number of the data row in the list, from 1. */
  readonly row: number
  /** Line of the file on which the row starts, from 1. */
  readonly line: number
  readonly cells: readonly string[]
  /**
   * The cell of the address column, or one address of it; '' if the row has none, or is a comment,
   * a header or a description of the columns.
   */
  readonly text: string
}

/** Adds the rows that a record of a list stands for: at least one. */
export function addRows(
  rows: ListRow[],
  record: ListRecord,
  row: number,
  dialect: ListDialect,
): void {
  const { line, cells } = record
  const { column, columnName, allAddresses } = dialect
  if (allAddresses === undefined) {
    const cell = cells[column] ?? ''
    rows.push({ row, line, cells, text: isLabel(cell, row, columnName) ? '' : cell })
  } else if (allAddresses === 'cells') {
    const [only = ''] = cells
    const isOrdinary = cells.length === 1 && ORDINARY.test(only)
    if (isOrdinary) rows.push({ row, line, cells, text: only })
    else for (const one of toRecipients(record, row)) rows.push(one)
  } else {
    const texts = findTexts(record, row, dialect)
    for (const text of texts.length > 0 ? texts : ['']) rows.push({ row, line, cells, text })
  }
}

/**
 * Returns the dialect of the rows from a record on: its column is another one if the record is the
 * header of a further table, in which the address column has another place.
 */
export function findTable({ cells }: ListRecord, dialect: ListDialect): ListDialect {
  const { column, columnName, header } = dialect
  if (header === null || columnName === null || hasAt(cells[column] ?? '')) return dialect
  const other = cells.indexOf(columnName)
  if (other === -1 || other === column || nameHint(columnName) === 'none') return dialect
  const names = cells.filter(cell => cell !== '' && header.includes(cell))
  const isHeader = names.length >= NAMES_MIN && !cells.some(hasAt)
  return isHeader ? { ...dialect, column: other, addressColumns: [other] } : dialect
}

/** A row may have one or two column names as values, such as `Email` for a way of contact. */
const NAMES_MIN = 3

/**
 * Returns true if a cell in place of an address is a column name, a comment between the rows, or a
 * description of the column below its name.
 */
const isLabel = (cell: string, row: number, columnName: string | null) =>
  isColumnName(cell, columnName) ||
  (!hasAt(cell) &&
    (cell.startsWith('#') ||
      (columnName !== null && row <= DESCRIPTIONS_MAX && DESCRIPTION.test(cell))))

/** Qualtrics writes the question and a JSON object below the name of each column. */
const DESCRIPTIONS_MAX = 2
/** Several words or JSON, and nothing like a domain, which a malformed address has. */
const DESCRIPTION = /^(?!.*\.\w).*[\s{]/s

/**
 * Returns true if a cell of a list with a header has the name of the address column, or another
 * name for an address, as between the tables of a report and in lists that were joined.
 */
const isColumnName = (cell: string, columnName: string | null) =>
  columnName !== null &&
  cell !== '' &&
  !hasAt(cell) &&
  (cell === columnName || (cell.length <= NAME_LENGTH_MAX && nameHint(cell) === 'exact'))

/** Longer than any name for an address. */
const NAME_LENGTH_MAX = 60

/** The fast path for most lists: one address per line, without anything around it. */
const ORDINARY = /^[\w.+-]+@[\w.-]+$/

/**
 * Returns a row for each address. Other cells, such as a name beside an address, follow the address
 * before them; a record without an @ is one row.
 */
function toRecipients({ line, cells }: ListRecord, row: number): ListRow[] {
  const filled = cells.filter(cell => !isBlank(cell)).map(unwrapItem)
  const first = Math.max(0, filled.findIndex(hasAt))
  const [leading, rest] = [filled.slice(0, first), filled.slice(first)]
  const rows: { text: string; cells: string[] }[] = []
  for (const cell of rest) {
    if (rows.length > 0 && !hasAt(cell)) rows.at(-1)?.cells.push(cell)
    else for (const text of splitAddresses(cell)) rows.push({ text, cells: [text] })
  }
  rows[0]?.cells.push(...leading)
  return rows.map(one => ({
    row,
    line,
    cells: one.cells,
    text: isLabel(one.text, row, null) ? '' : one.text,
  }))
}

/** Returns the texts of the address columns: any in the first one, addresses in the others. */
function findTexts(
  { cells }: ListRecord,
  row: number,
  { column, columnName, addressColumns = [column], header, width }: ListDialect,
): string[] {
  return cells.flatMap((cell, index) => {
    // A row without a header may have more addresses than the sample had columns.
    const isBeyond = header === null && index >= width
    const isTaken =
      index === column
        ? !isBlank(cell) && !isLabel(cell, row, columnName)
        : (isBeyond || addressColumns.includes(index)) && hasAt(cell)
    return isTaken ? splitAddresses(cell) : []
  })
}
