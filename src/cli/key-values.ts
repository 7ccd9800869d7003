import { wrapText } from './width.ts'

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
