import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { chooseColumn } from './column.ts'
import { findEncoding, ListDecoder } from './encoding.ts'
import { type CsvLayout, detectLayout, isNamed } from './layout.ts'

/** How a list is written, and where its addresses stand. */
export type ListDialect = {
  /** A label of the WHATWG Encoding Standard. */
  readonly encoding: string
  readonly delimiter: Delimiter
  /** The names of the columns as they stand in the list; null when it has none. */
  readonly header: readonly string[] | null
  /** Index of the address column, from 0. */
  readonly column: number
  /** Its name; null when the list has no header. */
  readonly columnName: string | null
  readonly newline: '\n' | '\r\n' | '\r'
  readonly bom: boolean
  /** Lines before the header or the first row that are none: `sep=;`, comments, a title. */
  readonly skipLines: number
  /** Columns of the list: those of the header, or more if rows of the sample have more. */
  readonly width: number
}

export type Delimiter = ',' | ';' | '\t' | '|'

/** How much of a list is looked at. */
export const HEAD_BYTES_MAX = 256 * 1024

export type DetectOptions = {
  /** Name of the address column in any case, or its number from 1. */
  column?: string | number
  /** A label of the WHATWG Encoding Standard, such as `windows-1252`; without it, ev looks. */
  encoding?: string
  /** Whether the list has a header; without it, ev looks. */
  header?: boolean
  /** Whether `head` is the whole file; without it, a head below 256 KiB is. */
  complete?: boolean
  /** How a message names these options; without it, as the command line does. */
  words?: OptionWords
}

/** Says how to read a list from its first bytes. Throws EvError `bad_input` that says what was seen and what to do. */
export function detectDialect(head: Uint8Array, options: DetectOptions = {}): ListDialect {
  const sample = sampleOf(head, options)
  return dialectOf(sample, columnOf(sample.layout, options))
}

/**
 * The same for a list of which somebody may still say where its addresses stand: where that is not found, its first
 * column stands in for theirs.
 */
export function detectColumns(
  head: Uint8Array,
  options: DetectOptions = {},
): { readonly dialect: ListDialect; readonly isFound: boolean } {
  const sample = sampleOf(head, options)
  const isFound = options.column !== undefined || chooseColumn(sample.layout.facts) !== null
  const column = isFound ? columnOf(sample.layout, options) : 0
  return { dialect: dialectOf(sample, column), isFound }
}

/** The first bytes of a list, laid out. */
type Sample = {
  readonly encoding: string
  readonly bom: boolean
  readonly layout: CsvLayout<Delimiter>
}

function sampleOf(head: Uint8Array, options: DetectOptions): Sample {
  const bytes = head.subarray(0, HEAD_BYTES_MAX)
  const complete =
    (options.complete ?? head.length < HEAD_BYTES_MAX) && bytes.length === head.length
  const { encoding, bom } = findEncoding(bytes, complete, options.encoding)
  const text = new ListDecoder(encoding).push(bytes, true)
  if (text.trim() === '') throw new EvError('bad_input', EMPTY)
  return { encoding, bom, layout: bestLayout(text, { ...options, complete }) }
}

function dialectOf({ encoding, bom, layout }: Sample, column: number): ListDialect {
  const header = layout.header?.cells ?? null
  return {
    encoding,
    delimiter: layout.delimiter,
    header,
    column,
    columnName: header?.[column] ?? null,
    newline: usualEnding(layout),
    bom,
    skipLines: layout.skipLines,
    width: Math.max(layout.width, column + 1),
  }
}

export type OptionWords = {
  readonly column: string
  /** How to say which column it is, by name or by number. */
  readonly columnForms: string
  /** How to say that there is no header. */
  readonly noHeader: string
}

const FLAGS: OptionWords = {
  column: '--column',
  columnForms: '--column NAME or --column N',
  noHeader: '--no-header',
}

/** In the order of preference when nothing decides. */
const DELIMITERS: readonly Delimiter[] = [',', ';', '\t', '|']

/** Excel's own first line that names the delimiter. */
const SEPARATOR_LINE = /^"?sep=([,;\t|])"?(?:\r\n|\r|\n|$)/i

function bestLayout(
  text: string,
  options: DetectOptions & { complete: boolean },
): CsvLayout<Delimiter> {
  const line = SEPARATOR_LINE.exec(text)
  const delimiters = DELIMITERS.filter(
    line ? delimiter => delimiter === line[1] : isWorthTrying(text),
  )
  const name = typeof options.column === 'string' ? options.column : undefined
  let best: CsvLayout<Delimiter> | null = null
  for (const delimiter of delimiters) {
    const layout = detectLayout(text.slice(line?.[0].length ?? 0), delimiter, {
      skippedLines: line ? 1 : 0,
      header: options.header,
      name: options.header === false ? undefined : name,
      complete: options.complete,
    })
    if (!best || merit(layout, name) > merit(best, name)) best = layout
  }
  if (!best || (best.rows.length === 0 && !best.header)) throw new EvError('bad_input', EMPTY)
  return best
}

/** Delimiters that do not occur in the text all give the same layout: the first of them is enough. */
function isWorthTrying(text: string): (delimiter: Delimiter) => boolean {
  const absent = DELIMITERS.find(delimiter => !text.includes(delimiter))
  return delimiter => delimiter === absent || text.includes(delimiter)
}

/** The delimiter that brings out the column asked for is the right one, whatever else speaks for others. */
const merit = (layout: CsvLayout, name: string | undefined) =>
  layout.fit + (name !== undefined && columnNamed(layout, name) !== -1 ? 10 : 0)

function columnOf(layout: CsvLayout, { column, words = FLAGS }: DetectOptions): number {
  if (column === undefined) return chooseColumn(layout.facts) ?? refuse(layout, NO_COLUMN, words)
  const named = typeof column === 'string' ? columnNamed(layout, column) : -1
  if (named !== -1) return named
  const number = typeof column === 'number' || /^\d+$/.test(column) ? Number(column) : Number.NaN
  if (Number.isInteger(number) && number >= 1 && number <= layout.width) return number - 1
  const given = sanitizeText(JSON.stringify(column), 80)
  return refuse(layout, `${words.column} ${given} is not among the columns of the list.`, words)
}

/** The column of that name; of several the one with the most addresses. -1 if there is none. */
function columnNamed({ header, facts }: CsvLayout, name: string): number {
  let chosen = -1
  for (const [column, cell] of (header?.cells ?? []).entries()) {
    if (!isNamed(cell, name)) continue
    const more = (facts[column]?.addresses ?? 0) > (facts[chosen]?.addresses ?? 0)
    if (chosen === -1 || more) chosen = column
  }
  return chosen
}

const NO_COLUMN = 'No column of addresses was found.'

function refuse({ header, rows, width }: CsvLayout, what: string, words: OptionWords): never {
  const names = (header ?? rows[0])?.cells ?? []
  const shown = names
    .slice(0, NAMES_SHOWN_MAX)
    .map((name, i) => `${i + 1} ${sanitizeText(name, 40)}`)
  if (width > shown.length) shown.push('…')
  const columns = width === 1 ? 'one column' : `${width} columns`
  throw new EvError(
    'bad_input',
    `${what} The list has ${columns}; ${header ? 'header' : 'first row'}: ${shown.join(', ')}. ` +
      `Say which one holds the addresses with ${words.columnForms}, and ${words.noHeader} if the first row is no header.`,
  )
}

/** Column names in a message, at most. */
const NAMES_SHOWN_MAX = 20

/** The line break that most records end with. */
function usualEnding({ header, rows }: CsvLayout): ListDialect['newline'] {
  const counts = { '\n': 0, '\r\n': 0, '\r': 0 }
  for (const { ending } of header ? [header, ...rows] : rows) {
    if (ending !== '') counts[ending] += 1
  }
  if (counts['\r\n'] > counts['\n'] && counts['\r\n'] >= counts['\r']) return '\r\n'
  return counts['\r'] > counts['\n'] ? '\r' : '\n'
}

const EMPTY =
  'The list is empty. It must hold at least one address: one a line, or CSV with a column of addresses.'
