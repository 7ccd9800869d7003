import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { chooseColumn, findAddressColumns } from './column.ts'
import { findEncoding, ListDecoder } from './encoding.ts'
import { findForeignText } from './foreign-text.ts'
import {
  type CsvLayout,
  detectLayout,
  isInApostrophes,
  isOnlyAddresses,
  isQuotedByLine,
  nameMatcher,
} from './layout.ts'
import type { ListRecord } from './record.ts'
import { escapePattern, type Quoting } from './record-splitter.ts'

/** The format of a list and the position of its address column. */
export type ListDialect = {
  /** A label of the WHATWG Encoding Standard. */
  readonly encoding: string
  readonly delimiter: Delimiter
  /** The column names as written in the list; null if it has no header. */
  readonly header: readonly string[] | null
  /** Index of the address column, from 0. */
  readonly column: number
  /** Name of the address column; null if the list has no header. */
  readonly columnName: string | null
  readonly newline: '\n' | '\r\n' | '\r'
  readonly bom: boolean
  /** Lines to skip before the header or the first row: `sep=;`, comments, a title. */
  readonly skipLines: number
  /** Number of columns: that of the header, or more if sample rows have more. */
  readonly width: number
  /** Left out if quotes are doubled. */
  readonly quoting?: Quoting
  /** Columns that hold addresses, from 0, with `column`; lists of earlier versions have none. */
  readonly addressColumns?: readonly number[]
  /**
   * Whether cells of `column` hold several addresses, or lines of a list without other columns;
   * lists of earlier versions do not tell.
   */
  readonly hasSeveral?: boolean
  /**
   * Left out if the cell in `column` of each row is verified. `columns`: each address in
   * `addressColumns` is a row of its own, with all cells of its row. `cells`: each cell is a row of
   * its own, as the list has nothing but addresses, such as pasted recipients.
   */
  readonly allAddresses?: 'columns' | 'cells'
  /**
   * Whether blank rows between others are rows without an address; lists of earlier versions skip
   * them, and lists without columns have none.
   */
  readonly countsBlankRows?: boolean
}

type Delimiter = ',' | ';' | '\t' | '|'

/** Maximum number of bytes of a list that detection reads. */
export const HEAD_BYTES_MAX = 256 * 1024

export type DetectOptions = {
  /** Name of the address column, case-insensitive, or its number from 1. */
  column?: string | number
  /** A label of the WHATWG Encoding Standard, such as `windows-1252`; detected if left out. */
  encoding?: string
  /** The delimiter; detected if left out. */
  delimiter?: Delimiter
  /** Whether the list has a header; detected if left out. */
  header?: boolean
  /**
   * Whether all addresses of a row are verified, each as a separate row, or only that of one
   * column; if left out, true for a list without a header, unless `column` is given.
   */
  allAddresses?: boolean
  /** Whether `head` is the complete file; if left out, true for a head below 256 KiB. */
  complete?: boolean
  /** How error messages name these options; as command-line flags if left out. */
  words?: OptionWords
  /** A sentence that ends error messages: where else the list may be. */
  elsewhere?: string
}

/**
 * Detects the format of a list from its first bytes. Throws EvError `bad_input` that says what was
 * found and what to do.
 */
export function detectDialect(head: Uint8Array, options: DetectOptions = {}): ListDialect {
  try {
    const sample = detectSample(head, options)
    return toDialect(sample, findColumn(sample.layout, options), options)
  } catch (error) {
    if (!(error instanceof EvError) || options.elsewhere === undefined) throw error
    throw new EvError('bad_input', `${error.message} ${options.elsewhere}`)
  }
}

/**
 * Detects the format of a list even if its address column is not found, because the caller can
 * still ask for it. Then `isFound` is false and `column` is 0.
 */
export function detectColumns(
  head: Uint8Array,
  options: DetectOptions = {},
): { readonly dialect: ListDialect; readonly isFound: boolean } {
  const sample = detectSample(head, options)
  const isFound = options.column !== undefined || chooseColumn(sample.layout.facts) !== null
  const column = isFound ? findColumn(sample.layout, options) : 0
  if (isFound) return { dialect: toDialect(sample, column, options), isFound }
  const dialect = toDialect(sample, column, { allAddresses: false })
  return { dialect: { ...dialect, addressColumns: [] }, isFound }
}

/** The first bytes of a list, decoded and split into columns. */
type Sample = {
  readonly encoding: string
  readonly bom: boolean
  readonly layout: CsvLayout<Delimiter>
}

function detectSample(head: Uint8Array, options: DetectOptions): Sample {
  const bytes = head.subarray(0, HEAD_BYTES_MAX)
  const complete =
    (options.complete ?? head.length < HEAD_BYTES_MAX) && bytes.length === head.length
  const { encoding, bom } = findEncoding(bytes, complete, options.encoding)
  const text = new ListDecoder(encoding).push(bytes, true)
  if (text.trim() === '') throw new EvError('bad_input', EMPTY)
  const foreign = findForeignText(text)
  if (foreign !== null) throw new EvError('bad_input', foreign)
  const layout = bestLayout(text, { ...options, complete })
  const isJson = JSON_RECORDS.test(text)
  if (isJson && (SECOND_KEY.test(text) || !isOnlyAddresses(layout))) {
    throw new EvError('bad_input', JSON_LIST)
  }
  const other = OTHER_DELIMITERS.find(delimiter => isDelimiter(layout, delimiter))
  if (other !== undefined) {
    throw new EvError(
      'bad_input',
      `The columns of the list are separated by ${nameDelimiter(other)}, which ev does not read. Save it with commas, semicolons, tabs or |.`,
    )
  }
  return { encoding, bom, layout }
}

/** Delimiters that are not read, as two of them are part of addresses too. Hive writes U+0001. */
const OTHER_DELIMITERS = ['^', '~', '¦', '\x01', '\x1F']

const nameDelimiter = (delimiter: string) =>
  delimiter < ' '
    ? `the control character U+${delimiter.charCodeAt(0).toString(16).padStart(4, '0').toUpperCase()}`
    : delimiter

/** Returns true if a list of one column has the character as often in each row as in its header. */
function isDelimiter({ header, rows, width }: CsvLayout, character: string): boolean {
  const countIn = (record: ListRecord) => (record.cells[0] ?? '').split(character).length
  const columns = header === null || width > 1 ? 1 : countIn(header)
  return columns > 1 && rows.length > 0 && rows.every(row => countIn(row) === columns)
}

/** Objects, or an array of them or of arrays; also one per line. */
const JSON_RECORDS = /^\s*(?:(?:\[\s*)?\{\s*"[^"]*"\s*:|\[\s*\[)/
/** A key after a comma: an object has more than an address. */
const SECOND_KEY = /,\s{0,100}"(?:[^"\\]|\\.){0,100}"\s{0,100}:/s
const JSON_LIST =
  'The list has JSON objects or nested arrays, which are not read. Save it as CSV, or as an array of addresses.'

function toDialect(
  { encoding, bom, layout }: Sample,
  column: number,
  options: DetectOptions,
): ListDialect {
  const header = layout.header?.cells ?? null
  const format = {
    encoding,
    delimiter: layout.delimiter,
    header,
    newline: detectNewline(layout),
    bom,
    skipLines: layout.skipLines,
    ...(layout.quoting === 'doubled' ? {} : { quoting: layout.quoting }),
  }
  const isOnly = isOnlyAddresses(layout)
  // Rows that are wider than a header of one name have no columns either.
  const hasNoHeader = header === null || (isOnly && layout.width > header.length)
  const isAll = options.allAddresses ?? (hasNoHeader && options.column === undefined)
  if (isAll && isOnly) {
    const columnName = header?.[0] ?? null
    const oneColumn = { column: 0, columnName, width: 1, addressColumns: [0] }
    const hasSeveral = layout.width > 1 || layout.facts.some(fact => fact.several > 0)
    return { ...format, ...oneColumn, hasSeveral, allAddresses: 'cells' }
  }
  return {
    ...format,
    column,
    columnName: header?.[column] ?? null,
    width: Math.max(layout.width, column + 1),
    addressColumns: findAddressColumns(layout.facts, column),
    hasSeveral: (layout.facts[column]?.several ?? 0) > 0,
    ...(isAll ? { allAddresses: 'columns' as const } : {}),
    countsBlankRows: true,
  }
}

type OptionWords = {
  readonly column: string
  /** How to select the column, by name or by number. */
  readonly columnForms: string
  /** How to declare that the list has no header. */
  readonly noHeader: string
}

const FLAGS: OptionWords = {
  column: '--column',
  columnForms: '--column NAME or --column N',
  noHeader: '--no-header',
}

/** In order of preference if several fit equally well. */
const DELIMITERS: readonly Delimiter[] = [',', ';', '\t', '|']

/** A cell in apostrophes. */
const APOSTROPHES = /(?:^|[,;\t|\r\n])'(?:[^'\r\n]|''){0,1000}'(?=[,;\t|\r\n]|$)/

/** Excel's optional first line that names the delimiter. */
const SEPARATOR_LINE = /^"?sep=([,;\t|])"?(?:\r\n|\r|\n|$)/i

function bestLayout(
  text: string,
  options: DetectOptions & { complete: boolean },
): CsvLayout<Delimiter> {
  const line = options.delimiter === undefined ? SEPARATOR_LINE.exec(text) : null
  const known = options.delimiter ?? line?.[1]
  const delimiters = DELIMITERS.filter(
    known === undefined ? isWorthTrying(text) : delimiter => delimiter === known,
  )
  const name = typeof options.column === 'string' ? options.column : undefined
  const layoutFor = (delimiter: Delimiter, quoting: Quoting) =>
    detectLayout(text.slice(line?.[0].length ?? 0), delimiter, {
      skippedLines: line ? 1 : 0,
      header: options.header,
      name: options.header === false ? undefined : name,
      complete: options.complete,
      quoting,
    })
  let best: CsvLayout<Delimiter> | null = null
  let tooWide: EvError | null = null
  for (const delimiter of delimiters) {
    const usual = layoutFor(delimiter, 'doubled')
    if (usual instanceof EvError) {
      tooWide ??= usual
      continue
    }
    const layouts = [usual]
    const addLayout = (quoting: Quoting) => {
      const layout = layoutFor(delimiter, quoting)
      if (!(layout instanceof EvError)) layouts.push(layout)
    }
    if (escapePattern(delimiter).test(text)) addLayout('backslash')
    if (isQuotedByLine(usual)) addLayout('line')
    if (APOSTROPHES.test(text)) {
      addLayout('single')
      // Of layouts that fit equally well, the first is taken.
      if (isInApostrophes(usual)) layouts.reverse()
    }
    for (const layout of layouts) {
      if (!best || score(layout, name) > score(best, name)) best = layout
    }
  }
  // With a delimiter that does not occur, every list has one column.
  if (tooWide && (!best || best.width === 1)) throw tooWide
  if (!best || (best.rows.length === 0 && !best.header)) throw new EvError('bad_input', EMPTY)
  return best
}

/**
 * Delimiters that do not occur in the text all give the same layout, so only the first of them is
 * tried. The `|` in a link of Slack is not a delimiter.
 */
function isWorthTrying(text: string): (delimiter: Delimiter) => boolean {
  const plain = text.replace(NO_DELIMITERS, '')
  const absent = DELIMITERS.find(delimiter => !plain.includes(delimiter))
  return delimiter => delimiter === absent || plain.includes(delimiter)
}

/** `<mailto:ann@example.com|Ann>`, `12;#ann@example.com`, `Ann Lee;#12;#ann@example.com` */
const NO_DELIMITERS =
  /<mailto:[^<>|\s]{1,320}\|[^<>|\r\n]{0,320}>|(?:(?<=^|\n)[^@;#\r\n]{1,200};#)?\b\d{1,10};#/gi

/** A delimiter that yields the requested column outweighs all other criteria. */
const score = (layout: CsvLayout, name: string | undefined) =>
  layout.fit + (name !== undefined && indexOfColumn(layout, name) !== -1 ? 10 : 0)

function findColumn(layout: CsvLayout, { column, words = FLAGS }: DetectOptions): number {
  if (column === undefined)
    return chooseColumn(layout.facts) ?? rejectColumn(layout, NO_COLUMN, words)
  const named = typeof column === 'string' ? indexOfColumn(layout, column) : -1
  if (named !== -1) return named
  const number = typeof column === 'number' || /^\d+$/.test(column) ? Number(column) : Number.NaN
  if (Number.isInteger(number) && number >= 1 && number <= layout.width) return number - 1
  const requested = sanitizeText(JSON.stringify(column), 80)
  return rejectColumn(layout, `${words.column} ${requested} is not a column of the list.`, words)
}

/**
 * Returns the column of that name, the one with the most addresses if several match; -1 if none
 * does.
 */
function indexOfColumn({ header, facts }: CsvLayout, name: string): number {
  const isNamed = nameMatcher(name)
  let chosen = -1
  for (const [column, cell] of (header?.cells ?? []).entries()) {
    if (!isNamed(cell)) continue
    const more = (facts[column]?.addresses ?? 0) > (facts[chosen]?.addresses ?? 0)
    if (chosen === -1 || more) chosen = column
  }
  return chosen
}

const NO_COLUMN = 'No address column found.'

function rejectColumn({ header, rows, width }: CsvLayout, what: string, words: OptionWords): never {
  const names = (header ?? rows[0])?.cells ?? []
  const shown = names
    .slice(0, NAMES_SHOWN_MAX)
    .map((name, i) => `${i + 1} ${sanitizeText(name, 40)}`)
  if (width > shown.length) shown.push('…')
  const columns = width === 1 ? 'one column' : `${width} columns`
  throw new EvError(
    'bad_input',
    `${what} The list has ${columns}; ${header ? 'header' : 'first row'}: ${shown.join(', ')}. ` +
      `Select the address column with ${words.columnForms}; add ${words.noHeader} if the first row is not a header.`,
  )
}

/** Maximum number of column names in a message. */
const NAMES_SHOWN_MAX = 20

/** Returns the line break that most records end with. */
function detectNewline({ header, rows }: CsvLayout): ListDialect['newline'] {
  const counts = { '\n': 0, '\r\n': 0, '\r': 0 }
  for (const { ending } of header ? [header, ...rows] : rows) {
    if (ending !== '') counts[ending] += 1
  }
  if (counts['\r\n'] > counts['\n'] && counts['\r\n'] >= counts['\r']) return '\r\n'
  return counts['\r'] > counts['\n'] ? '\r' : '\n'
}

const EMPTY =
  'The list is empty. Give at least one address: one per line, or CSV with an address column.'
