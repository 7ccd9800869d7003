import { stringify } from 'csv-stringify/sync'
import { CELL_LINE_BREAKS_MAX } from '../csv/csv.ts'
import { yieldToEventLoop } from '../platform/clock.ts'

type Row = readonly string[]

/** Rows that determine the width of a sheet, and their maximum number of cells. */
const WIDTH_ROWS = 1_000
const WIDTH_CELLS_MAX = 100_000
/** Wider rows are not padded: it would multiply the size of a sheet of short rows. */
const PADDED_WIDTH_MAX = 256
/** Cells that are converted at once: some 10 ms of work. */
const SLICE_CELLS = 20_000

/**
 * Converts the rows of a sheet to CSV, so that header, address column and rows are found as in any
 * list. As in the CSV of a spreadsheet program, narrower rows are padded to one width.
 */
export async function* toSheetText(
  batches: AsyncIterable<readonly Row[]>,
): AsyncGenerator<Uint8Array> {
  let first: Row[] = []
  let cells = 0
  let width: number | null = null
  for await (const rows of batches) {
    if (width !== null) {
      yield* toTexts(rows, width)
      continue
    }
    first.push(...rows)
    for (const row of rows) cells += row.length
    if (first.length < WIDTH_ROWS && cells < WIDTH_CELLS_MAX) continue
    width = paddedWidth(first)
    yield* toTexts(first, width)
    first = []
  }
  yield* toTexts(first, width ?? paddedWidth(first))
}

const paddedWidth = (rows: readonly Row[]) =>
  rows.reduce((width, row) => Math.max(width, Math.min(row.length, PADDED_WIDTH_MAX)), 0)

async function* toTexts(rows: readonly Row[], width: number): AsyncGenerator<Uint8Array> {
  let slice: Row[] = []
  let cells = 0
  for (const row of rows) {
    slice.push(row)
    cells += Math.max(row.length, width)
    if (cells < SLICE_CELLS) continue
    yield Buffer.from(toCsv(slice, width))
    slice = []
    cells = 0
    await yieldToEventLoop()
  }
  if (slice.length > 0) yield Buffer.from(toCsv(slice, width))
}

const toCsv = (rows: readonly Row[], width: number) =>
  stringify(
    rows.map(row => {
      const cells = row.map(limitLineBreaks)
      while (cells.length < width) cells.push('')
      return cells
    }),
    // Quoted, so that no cell is taken for a byte order mark, a blank line or several rows.
    { quoted_string: true, quoted_empty: false, record_delimiter: '\n' },
  )

/** A reader of CSV would end a cell with more line breaks. */
function limitLineBreaks(cell: string): string {
  if (!/[\r\n]/.test(cell)) return cell
  const lines = cell.split(/\r\n|\r|\n/)
  return lines.length > CELL_LINE_BREAKS_MAX ? lines.join(' ') : cell
}
