import type { EvError } from '../platform/error.ts'
import { type ColumnFacts, columnFacts, holdsAddress, isBlank } from './column.ts'
import { nameHint } from './header-names.ts'
import { COLUMNS_MAX, type ListRecord, RecordReader, tooManyColumns } from './record.ts'
import type { Quoting } from './record-splitter.ts'

/** A sample of a list, split at one delimiter. */
export type CsvLayout<D extends string = string> = {
  readonly delimiter: D
  readonly quoting: Quoting
  /** The record that names the columns; null if there is none. */
  readonly header: ListRecord | null
  readonly rows: readonly ListRecord[]
  /** Lines before the header, or before the first row. */
  readonly skipLines: number
  readonly width: number
  readonly facts: readonly ColumnFacts[]
  /**
   * How well the delimiter fits: up to 2 for the share of rows with an address, up to 1 for the
   * share of records with the usual number of columns if that is more than one, and up to 0.5 for
   * the share of cells with an @ that hold only addresses.
   */
  readonly fit: number
}

type LayoutOptions = {
  /** Lines already removed from the start of the text. */
  skippedLines: number
  /** Whether the list has a header; undefined to detect it. */
  header: boolean | undefined
  /** Prefer a header that has a column of this name. */
  name: string | undefined
  /** Whether the text is the complete list. */
  complete: boolean
  quoting: Quoting
}

/**
 * Splits the sample at `delimiter` and separates title lines, header and rows. Returns an EvError
 * if a record has too many columns.
 */
export function detectLayout<D extends string>(
  text: string,
  delimiter: D,
  options: LayoutOptions,
): CsvLayout<D> | EvError {
  const records = readSample(text, delimiter, options)
  const wide = records.find(({ cells }) => cells.length > COLUMNS_MAX && !areRecipients(cells))
  const isCut = !options.complete && wide === records.at(-1)
  if (wide !== undefined) return tooManyColumns(wide.cells.length, wide.line, isCut)
  const usual = usualWidth(records)
  const start = findStart(records, usual, options)
  const header = start.header ? (records[start.at] ?? null) : null
  const rows = records.slice(start.header ? start.at + 1 : start.at)
  const width = fullWidth(header?.cells.length ?? usual, rows)
  const sample = rows.slice(0, SAMPLE_ROWS).map(row => row.cells)
  const facts = columnFacts(sample, header?.cells ?? null, Math.min(width, COLUMNS_EXAMINED_MAX))
  const first = header ?? rows[0]
  return {
    delimiter,
    quoting: options.quoting,
    header,
    rows,
    skipLines: start.at === 0 ? options.skippedLines : (first?.line ?? 1) - 1,
    width,
    facts,
    fit:
      2 * addressShare(facts) +
      (usual > 1 ? shareOfWidth(records, usual) : 0) +
      0.5 * shareOfWhole(facts),
  }
}

/**
 * Returns true if nearly all cells of a list hold addresses, and a header has at most one name, as
 * in pasted recipients: the delimiter separates recipients, not columns.
 */
export function isOnlyAddresses({ header, facts }: CsvLayout): boolean {
  const sum = (count: (fact: ColumnFacts) => number) =>
    facts.reduce((total, fact) => total + count(fact), 0)
  const hasColumns = header !== null && header.cells.length > 1
  return !hasColumns && sum(fact => fact.withAt) >= sum(fact => fact.filled) * RECIPIENTS_MIN
}

/** A recipient here and there is a name without its address. */
const RECIPIENTS_MIN = 0.9

/** Returns true if the cells of a record are probably pasted recipients, of any number. */
const areRecipients = (cells: readonly string[]) =>
  cells.filter(cell => cell.includes('@')).length >= cells.length * RECIPIENTS_MIN

/** Returns true if the lines of a sample are quoted as if each were one cell. */
export function isQuotedByLine({ header, rows, delimiter, facts }: CsvLayout): boolean {
  const records = header === null ? rows : [header, ...rows]
  const quoted = records.filter(
    ({ cells: [first = '', ...others] }) => first.includes(delimiter) && others.every(isBlank),
  )
  // A first line of one name has no columns: the commas below it are text.
  const hasColumns = quoted[0] === records[0] || (records[0]?.cells.length ?? 0) > 1
  return hasColumns && quoted.length * 2 > records.length && addressShare(facts) < 0.5
}

/** Returns true if most cells of a sample are in apostrophes. */
export function isInApostrophes({ header, rows }: CsvLayout): boolean {
  const records = header === null ? rows : [header, ...rows]
  const cells = records.slice(0, SAMPLE_ROWS).flatMap(record => record.cells)
  const quoted = cells.filter(cell => cell.length > 1 && cell.startsWith("'"))
  return quoted.length * 2 > cells.filter(cell => !isBlank(cell)).length
}

/** Returns a test for a column name, without regard to case, Unicode form and surrounding space. */
export function nameMatcher(name: string): (cell: string) => boolean {
  const normalized = normalizeName(name)
  return cell => normalizeName(cell) === normalized
}
const normalizeName = (text: string) => text.normalize('NFC').trim().toLowerCase()

/**
 * Records read at each delimiter, to the end of a batch. It bounds the time of a detection, which is
 * one turn of the event loop: the head of a list may hold 100,000 records.
 */
const RECORDS_MAX = 3_000
/** Maximum number of rows examined for addresses; more would not change the result. */
const SAMPLE_ROWS = 1_000
/** Maximum number of columns examined for addresses. */
const COLUMNS_EXAMINED_MAX = 1_000
/** Maximum number of title lines before a header. */
const TITLE_LINES_MAX = 20
/**
 * Rows wider than the header widen the list by at most this many columns, so that one broken row
 * cannot widen all others without bound.
 */
const WIDER_MAX = 20

function readSample(
  text: string,
  delimiter: string,
  { skippedLines, complete, quoting }: LayoutOptions,
): ListRecord[] {
  const reading = { delimiter, line: skippedLines + 1, quoting }
  const records: ListRecord[] = []
  for (const batch of new RecordReader(reading).batches(text, complete)) {
    records.push(...batch)
    if (records.length >= RECORDS_MAX) return records
  }
  // If the sample holds no complete record, use the incomplete one.
  return records.length > 0 ? records : new RecordReader(reading).push(text, true)
}

function usualWidth(records: readonly ListRecord[]): number {
  const counts = new Map<number, number>()
  for (const { cells } of records) counts.set(cells.length, (counts.get(cells.length) ?? 0) + 1)
  let usual = 1
  for (const [width, count] of counts) {
    const most = counts.get(usual) ?? 0
    if (count > most || (count === most && width > usual)) usual = width
  }
  return usual
}

const shareOfWidth = (records: readonly ListRecord[], width: number) =>
  records.filter(record => record.cells.length === width).length / Math.max(records.length, 1)

/** Cells with an @ that hold other text too show that a delimiter divides addresses. */
function shareOfWhole(facts: readonly ColumnFacts[]): number {
  const withAt = facts.reduce((sum, fact) => sum + fact.withAt, 0)
  return withAt === 0 ? 1 : facts.reduce((sum, fact) => sum + fact.addresses, 0) / withAt
}

const addressShare = (facts: readonly ColumnFacts[]) =>
  facts.reduce((most, fact) => Math.max(most, fact.addresses / Math.max(fact.rows, 1)), 0)

function fullWidth(base: number, rows: readonly ListRecord[]): number {
  const widest = rows.reduce((most, row) => Math.max(most, row.cells.length), base)
  return Math.min(widest, base + WIDER_MAX)
}

/** Index of the header, or of the first row if there is no header. */
type Start = { at: number; header: boolean }

function findStart(records: readonly ListRecord[], usual: number, options: LayoutOptions): Start {
  const { name } = options
  if (name !== undefined) {
    const isNamed = nameMatcher(name)
    const at = records.slice(0, TITLE_LINES_MAX).findIndex(({ cells }) => cells.some(isNamed))
    if (at !== -1) return { at, header: true }
  }
  const start = records.findIndex(record => !isComment(record))
  if (start === -1) return { at: 0, header: options.header ?? false }
  if (options.header === false) return { at: start, header: false }
  const titles = start + countTitles(records.slice(start, start + TITLE_LINES_MAX), usual)
  const title = records[titles]
  if (titles > start && title && isHeader(title, records.slice(titles + 1), usual)) {
    return { at: titles, header: true }
  }
  const first = records[start]
  if (options.header || (first && isHeader(first, records.slice(start + 1), usual))) {
    return { at: start, header: true }
  }
  const above = records[start - 1]
  const marked = above && isMarkedHeader(above, usual)
  return marked ? { at: start - 1, header: true } : { at: start, header: false }
}

const isComment = ({ cells }: ListRecord) =>
  (cells[0] ?? '').startsWith('#') && !cells.some(holdsAddress)

/** `#email` or `#,name,email` is a header, not a comment, because rows follow it directly. */
const isMarkedHeader = ({ cells }: ListRecord, usual: number) =>
  cells.length === usual &&
  cells.some(cell => (usual === 1 ? nameHint(cell) === 'exact' : isMailName(cell)))

/**
 * Counts the title records at the start, such as "Customers, March", and blank ones: they are
 * narrower than the list and hold no address.
 */
function countTitles(records: readonly ListRecord[], usual: number): number {
  const end = records.findIndex(({ cells }) => {
    const filled = cells.filter(cell => cell.trim() !== '')
    const narrow = cells.length < usual || (usual > 1 && filled.length <= 1)
    return !narrow || cells.some(cell => holdsAddress(cell) || nameHint(cell) === 'exact')
  })
  return end === -1 ? 0 : end
}

/**
 * Returns true if a record is a header: it has a known column name, or it differs from the rows
 * below.
 */
function isHeader({ cells }: ListRecord, below: readonly ListRecord[], usual: number): boolean {
  if (cells.some(holdsAddress) || cells.every(isBlank)) return false
  if (cells.some(isMailName)) return true
  const text = cells.join('\n')
  // A list that others were joined to has its header again.
  const others = below.filter(row => row.cells.join('\n') !== text)
  const rows = others.slice(0, SAMPLE_ROWS).map(row => row.cells)
  const column = addressColumn(rows, Math.max(cells.length, usual))
  const numeric = cells.map(cell => NUMERIC.test(cell) && !YEAR.test(cell))
  const plain = !numeric.includes(true) && !repeats(cells, rows)
  // Without addresses below, the header matters only for messages or for a column requested by
  // name.
  if (column === null) return usual > 1 && plain
  const label = (cells[column] ?? '').trim()
  // A malformed address such as `user@` is a row of the list.
  if (label.includes('@')) return false
  if (label === '') return !numeric.includes(true) && rows.every(row => hasNumberUnder(cells, row))
  if (usual === 1) return !/[\d.]\S/.test(label)
  return plain
}

const isMailName = (cell: string) => {
  if (/^[^\s@]*@\S*$/.test(cell.trim()) || cell.length > NAME_LENGTH_MAX) return false
  const hint = nameHint(cell)
  return hint !== 'none' && hint !== 'login'
}

/** Longer cells are sentences, not column names. */
const NAME_LENGTH_MAX = 60
/** Years are common column names. */
const YEAR = /^\s*(?:19|20)\d\d\s*$/
const NUMERIC = /^\s*[+-]?\d[\d\s.,:/-]*$/

const hasNumberUnder = (cells: readonly string[], row: readonly string[]) =>
  cells.some((cell, i) => cell.trim() !== '' && NUMERIC.test(row[i] ?? ''))

/** Returns true if a value of the first record recurs in its column, which column names do not. */
const repeats = (cells: readonly string[], rows: readonly (readonly string[])[]) =>
  cells.some((cell, i) => cell.trim() !== '' && rows.some(row => row[i] === cell))

/** Returns the column with the most addresses; null if there are no addresses. */
function addressColumn(rows: readonly (readonly string[])[], width: number): number | null {
  let most = { column: -1, count: 0 }
  for (let column = 0; column < Math.min(width, COLUMNS_EXAMINED_MAX); column += 1) {
    const count = rows.filter(row => holdsAddress(row[column] ?? '')).length
    if (count > most.count) most = { column, count }
  }
  return most.count > 0 ? most.column : null
}
