import { isBlank } from './column.ts'
import type { ListDialect } from './dialect.ts'
import { ListDecoder } from './encoding.ts'
import { COLUMNS_MAX, type ListRecord, RecordReader } from './record.ts'
import { addRows, findTable, type ListRow } from './rows.ts'

/** Public interface of this folder: reading and writing lists. */
export {
  type DetectOptions,
  detectColumns,
  detectDialect,
  HEAD_BYTES_MAX,
  type ListDialect,
} from './dialect.ts'
export { CELL_LINE_BREAKS_MAX } from './record-splitter.ts'
export type { ListRow } from './rows.ts'
export {
  arrangeRow,
  columnNames,
  createRowWriter,
  isFormula,
  type OutputRow,
  type RowWriter,
  type Value,
} from './writer.ts'

/**
 * Returns a function that formats rows as JSON objects, with column names as keys in column order.
 * A repeated name gets `_2`, `_3`; a column without a name gets its number, from 1. Every row has
 * all columns of the list and any extra cells of its own.
 */
export function createRowObject(dialect: ListDialect): (cells: readonly string[]) => string {
  const names = objectKeys(dialect)
  const taken = new Set(names)
  const keys = names.map(name => `${JSON.stringify(name)}:`)
  // Built as text, because a JavaScript object would put number-like names first and lose
  // `__proto__`.
  return cells => {
    let text = '{'
    for (let i = 0; i < Math.max(keys.length, cells.length); i += 1) {
      const key = keys[i] ?? `"${uniqueName(String(i + 1), taken)}":`
      text += `${i === 0 ? '' : ','}${key}${JSON.stringify((cells[i] ?? '').toWellFormed())}`
    }
    return `${text}}`
  }
}

function objectKeys({ header, width }: ListDialect): string[] {
  const names = Array.from({ length: width }, (_, i) => {
    const name = header?.[i] ?? ''
    return name.trim() === '' ? String(i + 1) : name.toWellFormed()
  })
  return deduplicateNames(names)
}

function deduplicateNames(names: readonly string[]): string[] {
  // A column that is itself named like `name_2` keeps its name.
  const taken = new Set(names)
  const seen = new Set<string>()
  const next = new Map<string, number>()
  return names.map(name => {
    if (!seen.has(name)) {
      seen.add(name)
      return name
    }
    const free = uniqueName(name, taken, next.get(name))
    taken.add(free)
    // Remembers the next number: thousands of columns of one name would take quadratic time.
    next.set(name, Number(free.slice(name.length + 1)) + 1)
    return free
  })
}

/** Returns the name, or the name with the first number that is not taken. */
function uniqueName(name: string, taken: ReadonlySet<string>, from = 2): string {
  if (!taken.has(name)) return name
  let number = from
  while (taken.has(`${name}_${number}`)) number += 1
  return `${name}_${number}`
}

/** Maximum number of rows per batch, sized for one transaction of the store. */
const BATCH_ROWS_MAX = 500
/** Maximum number of cells per batch: the widest rows are yielded a few at a time. */
const BATCH_CELLS_MAX = 100_000
/**
 * Maximum text per batch, excluding its last row: rows of a megabyte are yielded a few at a time.
 */
const BATCH_LENGTH_MAX = 1024 * 1024

/**
 * Text is parsed in chunks of this length: with fewer records in memory, fewer survive a
 * collection, and V8 keeps its young generation small (120 MB of memory instead of 175 MB).
 */
const CHUNK_LENGTH = 16 * 1024

/**
 * Maximum number of blank rows, and of their cells, between two rows with content. A longer run is
 * the gap between two tables; a workbook of a few bytes can have one of a million rows.
 */
export const BLANK_ROWS_MAX = 1_000
const BLANK_CELLS_MAX = 100_000

/**
 * Streams the data rows in batches of at most 500, in file order. Ragged rows stay as they are.
 * Blank lines are skipped, and blank rows at the start, at the end and in long runs; others are
 * rows without an address if the dialect counts them. Throws EvError `bad_input` for a row beyond
 * 1 MiB or `COLUMNS_MAX`.
 */
export async function* readList(
  source: AsyncIterable<Uint8Array>,
  dialect: ListDialect,
): AsyncGenerator<ListRow[]> {
  let batch: ListRow[] = []
  let cells = 0
  let length = 0
  for await (const rows of readRows(source, dialect)) {
    for (const row of rows) {
      batch.push(row)
      cells += row.cells.length
      for (const cell of row.cells) length += cell.length
      const isFull = batch.length >= BATCH_ROWS_MAX || cells >= BATCH_CELLS_MAX
      if (!isFull && length < BATCH_LENGTH_MAX) continue
      yield batch
      batch = []
      cells = 0
      length = 0
    }
  }
  if (batch.length > 0) yield batch
}

/** Yields the rows that some records stand for. */
async function* readRows(
  source: AsyncIterable<Uint8Array>,
  dialect: ListDialect,
): AsyncGenerator<ListRow[]> {
  // The brackets of a JSON array are not rows.
  const isEmpty = dialect.allAddresses === 'cells' ? isBlank : isWhiteSpace
  const blanks = new BlankRun()
  let table = dialect
  let row = 0
  let isHeaderPending = dialect.header !== null
  for await (const records of readRecords(source, dialect)) {
    const rows: ListRow[] = []
    for (const record of records) {
      if (isHeaderPending) isHeaderPending = false
      else if (!record.cells.every(isEmpty)) {
        for (const blank of blanks.end()) {
          if (row > 0 || dialect.header !== null) addRows(rows, blank, ++row, table)
        }
        table = findTable(record, table)
        addRows(rows, record, ++row, table)
      } else if (dialect.countsBlankRows === true && record.cells.length > 1) blanks.add(record)
    }
    yield rows
  }
}

/** Holds the blank rows since the last row with content, up to the length of a gap. */
class BlankRun {
  #records: ListRecord[] = []
  #cells = 0
  #isGap = false

  add(record: ListRecord) {
    this.#cells += record.cells.length
    this.#isGap ||= this.#records.length >= BLANK_ROWS_MAX || this.#cells > BLANK_CELLS_MAX
    if (this.#isGap) this.#records = []
    else this.#records.push(record)
  }

  /** Ends the run and returns its rows; none if it is a gap. */
  end(): readonly ListRecord[] {
    if (this.#cells === 0) return NO_RECORDS
    const records = this.#records
    this.#records = []
    this.#cells = 0
    this.#isGap = false
    return records
  }
}

const NO_RECORDS: readonly ListRecord[] = []

const isWhiteSpace = (cell: string) => cell.trim() === ''

async function* readRecords(
  source: AsyncIterable<Uint8Array>,
  dialect: ListDialect,
): AsyncGenerator<ListRecord[]> {
  const { header, width } = dialect
  const decoder = new ListDecoder(dialect.encoding)
  const reader = new RecordReader({
    delimiter: dialect.delimiter,
    line: dialect.skipLines + 1,
    newline: dialect.newline,
    ...(dialect.quoting === undefined ? {} : { quoting: dialect.quoting }),
    // Pasted recipients have any number of cells in a record.
    ...(dialect.allAddresses === 'cells'
      ? {}
      : { width: header?.length ?? width, columnsMax: COLUMNS_MAX }),
  })
  let started = dialect.skipLines === 0
  let preamble = ''
  const read = (text: string, last: boolean) => {
    if (started) return reader.batches(text, last)
    preamble += text
    const start = afterLines(preamble, dialect.skipLines, last)
    if (start === -1) return []
    started = true
    return reader.batches(preamble.slice(start), last)
  }
  for await (const bytes of source) {
    const text = decoder.push(bytes)
    for (let i = 0; i < text.length; i += CHUNK_LENGTH)
      yield* read(text.slice(i, i + CHUNK_LENGTH), false)
  }
  yield* read(decoder.push(new Uint8Array(), true), true)
}

/** Returns the index after the first `count` lines; -1 if more text is needed. */
function afterLines(text: string, count: number, last: boolean): number {
  let seen = 0
  for (const { index, 0: found } of text.matchAll(/\r\n|\r|\n/g)) {
    const end = index + found.length
    // A CR at the end may be half of a CRLF.
    if (found === '\r' && end === text.length && !last) return -1
    seen += 1
    if (seen === count) return end
  }
  return last ? text.length : -1
}
