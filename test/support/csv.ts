import { readFileSync } from 'node:fs'
import { parse } from 'csv-parse/sync'
import { detectDialect } from '../../src/csv/csv.ts'

/** Detects the dialect of a complete list. */
export const dialectOf = (text: string) => detectDialect(Buffer.from(text), { complete: true })

export type Row = Readonly<Record<string, string>>

/** Parses the rows of a result into objects by column name. */
export const rowsOf = (text: string, delimiter = ','): Row[] =>
  parse(text, { columns: true, bom: true, delimiter }) as Row[]

/** Returns rows as objects by the names in the first one. */
export const objectsOf = ([names = [], ...rows]: readonly (readonly string[])[]): Row[] =>
  rows.map(row => Object.fromEntries(names.map((name, at) => [name, row[at] ?? ''])))

export const rowsIn = (file: string, delimiter = ','): Row[] =>
  rowsOf(readFileSync(file, 'utf8'), delimiter)

/** Removes the times of the checks, which differ between runs. */
export function withoutTimes(text: string): string {
  const table = parse(text) as string[][]
  const times = table[0]?.indexOf('ev_checked_at') ?? -1
  if (times < 0) throw new Error('the result has no column ev_checked_at')
  return table.map(row => row.filter((_, column) => column !== times).join('\u0001')).join('\n')
}
