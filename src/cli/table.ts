import { longestPart, padded, textWidth, wrapText } from './width.ts'

/** Heading and alignment of a column. */
export type Column = {
  readonly title: string
  readonly align?: 'left' | 'right'
  /** Rank in which columns are left out if the table is too wide; none: it is always shown. */
  readonly dropRank?: number
}

/** Columns are not narrowed below this width, so that words such as `completed` are not cut. */
const WIDTH_MIN = 10
const GAP = '  '

/**
 * Formats rows under headings, each column as wide as its widest cell. If the table is wider than
 * `width`, columns are left out by their rank, then the widest ones are wrapped.
 */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number | null = null,
): string {
  const all = [columns.map(({ title }) => title), ...rows]
  const widths = columns.map((_, n) => Math.max(...all.map(row => textWidth(row[n] ?? ''))))
  const shown = fittingColumns(columns, widths, width)
  if (width !== null) {
    const parts = columns.map((_, n) => Math.max(...all.map(row => longestPart(row[n] ?? ''))))
    narrow(shown, columns, widths, { width, widthsMin: parts })
    // On a very narrow terminal, words are cut.
    narrow(shown, columns, widths, { width, widthsMin: columns.map(() => WIDTH_MIN) })
  }
  return all.map(row => rowText(row, shown, columns, widths)).join('')
}

const totalWidth = (shown: readonly number[], widths: readonly number[]) =>
  shown.reduce((sum, n) => sum + (widths[n] ?? 0) + GAP.length, -GAP.length)

/** Returns the indices of the columns to show. */
function fittingColumns(
  columns: readonly Column[],
  widths: readonly number[],
  width: number | null,
): number[] {
  let shown = columns.map((_, n) => n)
  const ranks = columns.flatMap(({ dropRank }) => dropRank ?? [])
  for (const rank of [...new Set(ranks)].sort((a, b) => a - b)) {
    if (width === null || totalWidth(shown, widths) <= width) break
    shown = shown.filter(n => columns[n]?.dropRank !== rank)
  }
  return shown
}

type NarrowOptions = { readonly width: number; readonly widthsMin: readonly number[] }

/** Reduces the widest columns of text in `widths` until the table fits. */
function narrow(
  shown: readonly number[],
  columns: readonly Column[],
  widths: number[],
  { width, widthsMin }: NarrowOptions,
): void {
  // The first column identifies the row, so that it is copied whole.
  const texts = shown.filter(n => n > 0 && columns[n]?.align !== 'right')
  for (let over = totalWidth(shown, widths) - width; over > 0; over--) {
    const wide = texts.filter(n => (widths[n] ?? 0) > Math.max(WIDTH_MIN, widthsMin[n] ?? 0))
    if (wide.length === 0) return
    const widest = Math.max(...wide.map(n => widths[n] ?? 0))
    widths[wide.find(n => widths[n] === widest) as number] = widest - 1
  }
}

function rowText(
  row: readonly string[],
  shown: readonly number[],
  columns: readonly Column[],
  widths: readonly number[],
): string {
  const cells = shown.map(n => wrapText(row[n] ?? '', widths[n] ?? 0))
  const height = Math.max(...cells.map(lines => lines.length))
  const lines = Array.from({ length: height }, (_, y) =>
    shown
      .map((n, x) => padded(cells[x]?.[y] ?? '', widths[n] ?? 0, columns[n]?.align))
      .join(GAP)
      .trimEnd(),
  )
  return lines.map(line => `${line}\n`).join('')
}

type KeyValuesOptions = {
  /** Width of the output; values are wrapped to it. Null: they are not wrapped. */
  readonly width?: number | null
  /** Width of the names; that of the longest one if left out. */
  readonly nameWidth?: number
}

/** Formats names and aligned values, one pair per line, without those that are null. */
export function keyValues(
  all: readonly (readonly [name: string, value: string | null])[],
  { width = null, nameWidth }: KeyValuesOptions = {},
): string {
  const shown = all.filter((pair): pair is [string, string] => pair[1] !== null)
  const column = nameWidth ?? Math.max(...shown.map(([name]) => name.length))
  const room = width === null ? Number.POSITIVE_INFINITY : Math.max(20, width - column - 4)
  const newLine = `\n${' '.repeat(column + 4)}`
  return shown
    .map(([name, value]) => `  ${name.padEnd(column)}  ${wrapText(value, room).join(newLine)}\n`)
    .join('')
}
