import { stringify } from 'csv-stringify/sync'
import { CELL_LINE_BREAKS_MAX } from '../csv/csv.ts'

/** Rows that determine the width of a sheet. */
const WIDTH_ROWS = 1_000

/**
 * Converts the rows of a sheet to CSV, so that header, address column and rows are found as in any
 * list. As in the CSV of a spreadsheet program, narrower rows are padded to one width.
 */
export async function* toSheetText(
  batches: AsyncIterable<readonly (readonly string[])[]>,
): AsyncGenerator<Uint8Array> {
  let first: (readonly string[])[] = []
  let width = 0
  const write = (rows: readonly (readonly string[])[]) => Buffer.from(toCsv(rows, width))
  for await (const rows of batches) {
    if (width > 0) {
      yield write(rows)
      continue
    }
    first.push(...rows)
    if (first.length < WIDTH_ROWS) continue
    width = widthOf(first)
    yield write(first)
    first = []
  }
  width ||= widthOf(first)
  if (first.length > 0) yield write(first)
}

const widthOf = (rows: readonly (readonly string[])[]) =>
  rows.reduce((width, row) => Math.max(width, row.length), 0)

const toCsv = (rows: readonly (readonly string[])[], width: number) =>
  stringify(
    rows.map(row => {
      const cells = row.map(limitLineBreaks)
      while (cells.length < width) cells.push('')
      return cells
    }),
    // Quoted, so that no cell is taken for a byte order mark, a blank line or several rows.
    { quoted_string: true, record_delimiter: '\n' },
  )

/** A reader of CSV would end a cell with more line breaks. */
function limitLineBreaks(cell: string): string {
  if (!/[\r\n]/.test(cell)) return cell
  const lines = cell.split(/\r\n|\r|\n/)
  return lines.length > CELL_LINE_BREAKS_MAX ? lines.join(' ') : cell
}
