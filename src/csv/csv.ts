import type { ListDialect } from './dialect.ts'
import { ListDecoder } from './encoding.ts'
import { type ListRecord, RecordReader } from './record.ts'

/** Lists in, lists out: everything that the rest of the house needs to know of CSV. */
export {
  type Delimiter,
  type DetectOptions,
  detectColumns,
  detectDialect,
  HEAD_BYTES_MAX,
  type ListDialect,
  type OptionWords,
} from './dialect.ts'
export { createRowWriter, type RowWriter } from './writer.ts'

/**
 * Writes rows of a list as JSON objects: the cells by the names of their columns, in the order of the
 * columns. A name that comes again gets `_2`, `_3`; a column without a name has its number, from 1.
 * Every row has all columns of the list, and those beyond them that it has itself.
 */
export function createRowObject(dialect: ListDialect): (cells: readonly string[]) => string {
  const names = columnNames(dialect)
  const taken = new Set(names)
  const keys = names.map(name => `${JSON.stringify(name)}:`)
  // Written by hand: an object of JavaScript would put number-like names first, and lose `__proto__`.
  return cells => {
    let text = '{'
    for (let i = 0; i < Math.max(keys.length, cells.length); i += 1) {
      const key = keys[i] ?? `"${freeName(String(i + 1), taken)}":`
      text += `${i === 0 ? '' : ','}${key}${JSON.stringify((cells[i] ?? '').toWellFormed())}`
    }
    return `${text}}`
  }
}

function columnNames({ header, width }: ListDialect): string[] {
  const names = Array.from({ length: width }, (_, i) => {
    const name = header?.[i] ?? ''
    return name.trim() === '' ? String(i + 1) : name.toWellFormed()
  })
  return deduplicated(names)
}

function deduplicated(names: readonly string[]): string[] {
  // A later column keeps a name that is its own.
  const taken = new Set(names)
  const seen = new Set<string>()
  const next = new Map<string, number>()
  return names.map(name => {
    if (!seen.has(name)) {
      seen.add(name)
      return name
    }
    const free = freeName(name, taken, next.get(name))
    taken.add(free)
    // Thousands of columns of one name would otherwise cost a square.
    next.set(name, Number(free.slice(name.length + 1)) + 1)
    return free
  })
}

/** The name itself, or with the first number behind it that makes it another than all taken ones. */
function freeName(name: string, taken: ReadonlySet<string>, from = 2): string {
  if (!taken.has(name)) return name
  let number = from
  while (taken.has(`${name}_${number}`)) number += 1
  return `${name}_${number}`
}

/** A data row of a list. */
export type ListRow = {
  /** Number of the data row, from 1. */
  readonly row: number
  /** The line of the file on which the row begins, from 1. */
  readonly line: number
  readonly cells: readonly string[]
  /** The raw cell of the address column; '' when the row is too short. */
  readonly text: string
}

/** Rows in one batch, at most: what one transaction of the store takes well. */
const BATCH_ROWS_MAX = 500
/** Cells in one batch, at most: rows of a hundred thousand cells go one by one. */
const BATCH_CELLS_MAX = 100_000
/** Text in one batch, at most, but for its last row: rows of a megabyte go a few at a time. */
const BATCH_LENGTH_MAX = 1024 * 1024

/**
 * Text is read in pieces of this length: the fewer records wait at once, the less of them outlives a
 * collection, and V8 keeps its young generation small (120 MB of memory in place of 175 MB).
 */
const PIECE_LENGTH = 16 * 1024

/**
 * Streams the rows after the header in batches of at most 500, in the order of the file. Ragged rows
 * stay as they are; blank lines are no rows. Throws EvError `bad_input` for a row beyond 1 MiB.
 */
export async function* readList(
  source: AsyncIterable<Uint8Array>,
  dialect: ListDialect,
): AsyncGenerator<ListRow[]> {
  let row = 0
  let headerAhead = dialect.header !== null
  let batch: ListRow[] = []
  let cells = 0
  let length = 0
  for await (const records of readRecords(source, dialect)) {
    for (const record of records) {
      if (headerAhead) {
        headerAhead = false
        continue
      }
      row += 1
      batch.push(toRow(record, row, dialect.column))
      cells += record.cells.length
      for (const cell of record.cells) length += cell.length
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

const toRow = ({ line, cells }: ListRecord, row: number, column: number): ListRow => ({
  row,
  line,
  cells,
  text: cells[column] ?? '',
})

async function* readRecords(
  source: AsyncIterable<Uint8Array>,
  dialect: ListDialect,
): AsyncGenerator<ListRecord[]> {
  const decoder = new ListDecoder(dialect.encoding)
  const reader = new RecordReader({ delimiter: dialect.delimiter, line: dialect.skipLines + 1 })
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
    for (let i = 0; i < text.length; i += PIECE_LENGTH)
      yield* read(text.slice(i, i + PIECE_LENGTH), false)
  }
  yield* read(decoder.push(new Uint8Array(), true), true)
}

/** The index behind the first `count` lines; -1 while that cannot be said. */
function afterLines(text: string, count: number, last: boolean): number {
  let seen = 0
  for (const { index, 0: found } of text.matchAll(/\r\n|\r|\n/g)) {
    const end = index + found.length
    // A lone CR at the end may be half of a CRLF.
    if (found === '\r' && end === text.length && !last) return -1
    seen += 1
    if (seen === count) return end
  }
  return last ? text.length : -1
}
