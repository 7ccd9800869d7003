import { type ColumnFacts, columnFacts, looksLikeAddress } from './column.ts'
import { nameHint } from './header-names.ts'
import { type ListRecord, RecordReader } from './record.ts'

/** What the sample of a list looks like when it is cut at one delimiter. */
export type CsvLayout<D extends string = string> = {
  readonly delimiter: D
  /** The record with the names of the columns. */
  readonly header: ListRecord | null
  readonly rows: readonly ListRecord[]
  /** Lines before the header, or before the first row. */
  readonly skipLines: number
  readonly width: number
  readonly facts: readonly ColumnFacts[]
  /** How well the rows come out: 2 for an address in each, 1 for two or more columns in each alike. */
  readonly fit: number
}

export type LayoutOptions = {
  /** Lines already taken off the text. */
  skippedLines: number
  /** Whether a header is there; undefined to look. */
  header: boolean | undefined
  /** A name that the header must hold, if it can be found. */
  name: string | undefined
  /** Whether the text is the whole list. */
  complete: boolean
}

/** Cuts the sample at `delimiter` and finds out what is title, header and rows. */
export function detectLayout<D extends string>(
  text: string,
  delimiter: D,
  options: LayoutOptions,
): CsvLayout<D> {
  const records = readSample(text, delimiter, options)
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
    header,
    rows,
    skipLines: start.at === 0 ? options.skippedLines : (first?.line ?? 1) - 1,
    width,
    facts,
    fit: 2 * addressShare(facts) + (usual > 1 ? shareOfWidth(records, usual) : 0),
  }
}

/** Whether a cell is the name of a column as someone typed it. */
export const isNamed = (cell: string, name: string) => folded(cell) === folded(name)
const folded = (text: string) => text.normalize('NFC').trim().toLowerCase()

/** Rows that decide; more would not change the answer. */
const SAMPLE_ROWS = 1_000
/** Columns among which ev looks for addresses by itself. */
const COLUMNS_EXAMINED_MAX = 1_000
/** Title lines before a header, at most. */
const TITLE_LINES_MAX = 20
/** By how much rows wider than the header may widen the list; one broken row must not widen all others without bound. */
const WIDER_MAX = 20

function readSample(text: string, delimiter: string, options: LayoutOptions): ListRecord[] {
  const line = options.skippedLines + 1
  const records = new RecordReader({ delimiter, line }).push(text, options.complete)
  // A head without a single whole record is better than nothing.
  return records.length > 0 ? records : new RecordReader({ delimiter, line }).push(text, true)
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

const addressShare = (facts: readonly ColumnFacts[]) =>
  facts.reduce((most, fact) => Math.max(most, fact.addresses / Math.max(fact.rows, 1)), 0)

function fullWidth(base: number, rows: readonly ListRecord[]): number {
  const widest = rows.reduce((most, row) => Math.max(most, row.cells.length), base)
  return Math.min(widest, base + WIDER_MAX)
}

/** Where the list begins: at a header or at a row. */
type Start = { at: number; header: boolean }

function findStart(records: readonly ListRecord[], usual: number, options: LayoutOptions): Start {
  const { name } = options
  if (name !== undefined) {
    const at = records
      .slice(0, TITLE_LINES_MAX)
      .findIndex(({ cells }) => cells.some(cell => isNamed(cell, name)))
    if (at !== -1) return { at, header: true }
  }
  const begin = records.findIndex(record => !isComment(record))
  if (begin === -1) return { at: 0, header: options.header ?? false }
  if (options.header === false) return { at: begin, header: false }
  const titles = begin + countTitles(records.slice(begin, begin + TITLE_LINES_MAX), usual)
  const title = records[titles]
  if (titles > begin && title && isHeader(title, records.slice(titles + 1), usual)) {
    return { at: titles, header: true }
  }
  const first = records[begin]
  if (options.header || (first && isHeader(first, records.slice(begin + 1), usual))) {
    return { at: begin, header: true }
  }
  const above = records[begin - 1]
  const marked = above && isMarkedHeader(above, usual)
  return marked ? { at: begin - 1, header: true } : { at: begin, header: false }
}

const isComment = ({ cells }: ListRecord) =>
  (cells[0] ?? '').startsWith('#') && !cells.some(looksLikeAddress)

/** `#email` or `#,name,email`: a header, not a comment, as rows follow it at once. */
const isMarkedHeader = ({ cells }: ListRecord, usual: number) =>
  cells.length === usual &&
  cells.some(cell => (usual === 1 ? nameHint(cell) === 'exact' : isMailName(cell)))

/** Records at the beginning that are narrower than the list and hold no address: "Customers, March". */
function countTitles(records: readonly ListRecord[], usual: number): number {
  const end = records.findIndex(({ cells }) => {
    const filled = cells.filter(cell => cell.trim() !== '')
    const narrow = cells.length < usual || (usual > 1 && filled.length === 1)
    return !narrow || cells.some(cell => looksLikeAddress(cell) || nameHint(cell) === 'exact')
  })
  return end === -1 ? 0 : end
}

/** Whether a record names columns. A known name says so; else it must differ from the rows below it. */
function isHeader({ cells }: ListRecord, below: readonly ListRecord[], usual: number): boolean {
  if (cells.some(looksLikeAddress)) return false
  if (cells.some(isMailName)) return true
  const rows = below.slice(0, SAMPLE_ROWS).map(row => row.cells)
  const column = addressColumn(rows, Math.max(cells.length, usual))
  const numeric = cells.map(cell => NUMERIC.test(cell) && !YEAR.test(cell))
  const plain = !numeric.includes(true) && !repeats(cells, rows)
  // No address below: it matters only for the names in a message, or for a column that was asked for.
  if (column === null) return usual > 1 && plain
  const label = (cells[column] ?? '').trim()
  // An address gone wrong, such as `user@`: a row of the list.
  if (label.includes('@')) return false
  if (label === '') return !numeric.includes(true) && rows.every(row => hasNumberUnder(cells, row))
  if (usual === 1) return !/[\d.]\S/.test(label)
  return plain
}

const isMailName = (cell: string) => {
  if (/^\S*@\S*$/.test(cell.trim()) || cell.length > NAME_LENGTH_MAX) return false
  const hint = nameHint(cell)
  return hint !== 'none' && hint !== 'login'
}

/** A sentence about mail is no name of a column. */
const NAME_LENGTH_MAX = 60
/** Years are names of columns often enough. */
const YEAR = /^\s*(?:19|20)\d\d\s*$/
const NUMERIC = /^\s*[+-]?\d[\d\s.,:/-]*$/

const hasNumberUnder = (cells: readonly string[], row: readonly string[]) =>
  cells.some((cell, i) => cell.trim() !== '' && NUMERIC.test(row[i] ?? ''))

/** Whether a value of the first record comes again in its column, as names of columns do not. */
const repeats = (cells: readonly string[], rows: readonly (readonly string[])[]) =>
  cells.some((cell, i) => cell.trim() !== '' && rows.some(row => row[i] === cell))

/** The column with the most addresses. */
function addressColumn(rows: readonly (readonly string[])[], width: number): number | null {
  let most = { column: -1, count: 0 }
  for (let column = 0; column < Math.min(width, COLUMNS_EXAMINED_MAX); column += 1) {
    const count = rows.filter(row => looksLikeAddress(row[column] ?? '')).length
    if (count > most.count) most = { column, count }
  }
  return most.count > 0 ? most.column : null
}
