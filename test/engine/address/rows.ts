import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, '../../../fixtures/address')

/** Returns the rows of a table in fixtures/address without its header; decodes `\uXXXX`. */
export function rows(name: string): string[][] {
  const [, ...lines] = readFileSync(join(FOLDER, `${name}.tsv`), 'utf8')
    .replace(/\n$/, '')
    .split('\n')
  return lines.map(line => line.split('\t').map(unescaped))
}

const unescaped = (cell: string) =>
  cell.replace(/\\u([0-9a-f]{4})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
