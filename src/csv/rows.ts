import { hasAt, isBlank, splitAddresses, unwrapItem } from './column.ts'
import type { ListDialect } from './dialect.ts'
import type { ListRecord } from './record.ts'

/** A data row of a list; a row with several addresses is one for each, if all are verified. */
export type ListRow = {
  /** Number of the data row in the list, from 1. */
  readonly row: number
  /** Line of the file on which the row starts, from 1. */
  readonly line: number
  readonly cells: readonly string[]
  /** The cell of the address column, or one address of it; '' if the row has none. */
  readonly text: string
}

/** Returns the rows that a record of a list stands for: at least one. */
export function toRows(record: ListRecord, row: number, dialect: ListDialect): ListRow[] {
  const { line, cells } = record
  const { column, allAddresses } = dialect
  if (allAddresses === undefined) return [{ row, line, cells, text: cells[column] ?? '' }]
  if (allAddresses === 'cells') {
    const recipients = findRecipients(cells)
    return recipients.map(text => ({ row, line, cells: [text], text }))
  }
  const texts = findTexts(cells, dialect)
  return (texts.length > 0 ? texts : ['']).map(text => ({ row, line, cells, text }))
}

/** Returns the content of each cell, and each address of a cell that holds several. */
function findRecipients(cells: readonly string[]): readonly string[] {
  // A text with a delimiter that is no address stays one row.
  if (!cells.some(hasAt)) return [cells.find(cell => !isBlank(cell))?.trim() ?? '']
  return cells
    .filter(cell => !isBlank(cell))
    .flatMap(splitAddresses)
    .map(unwrapItem)
}

/** Returns the texts of the address columns: any in the first one, addresses in the others. */
function findTexts(
  cells: readonly string[],
  { column, addressColumns = [column], header, width }: ListDialect,
): string[] {
  return cells.flatMap((cell, index) => {
    // A row without a header may have more addresses than the sample had columns.
    const isBeyond = header === null && index >= width
    const isTaken =
      index === column
        ? !isBlank(cell)
        : (isBeyond || addressColumns.includes(index)) && hasAt(cell)
    return isTaken ? splitAddresses(cell) : []
  })
}
