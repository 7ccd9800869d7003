import { parse } from 'csv-parse/sync'
import { EvError } from '../platform/error.ts'
import { formatNumber } from '../platform/format.ts'
import { hasAt } from './column.ts'
import {
  countCells,
  type RawRecord,
  RecordSplitter,
  type SplittingOptions,
} from './record-splitter.ts'

/** One record of a list as written in the file. */
export type ListRecord = Pick<RawRecord, 'line' | 'ending'> & { readonly cells: readonly string[] }

type ReadingOptions = SplittingOptions & {
  /** Maximum number of cells of a record; unlimited if left out. */
  readonly columnsMax?: number
}

/** Reads records from text: rows of any width, with repaired quotes. */
export class RecordReader {
  readonly #splitter: RecordSplitter
  readonly #delimiter: string
  readonly #isQuotedByLine: boolean
  readonly #width: number | undefined
  readonly #columnsMax: number

  constructor(options: ReadingOptions) {
    this.#splitter = new RecordSplitter(options)
    this.#delimiter = options.delimiter
    this.#isQuotedByLine = options.quoting === 'line'
    this.#width = options.width
    this.#columnsMax = options.columnsMax ?? Number.POSITIVE_INFINITY
  }

  /**
   * Adds the next chunk of text and returns the records that it completes; `last` marks the final
   * chunk. Throws EvError `bad_input` for a record beyond a limit.
   */
  push(text: string, last = false): ListRecord[] {
    return [...this.batches(text, last)].flat()
  }

  /**
   * Like `push`, but yields records in batches: the text after one unclosed quote may hold a
   * million.
   */
  *batches(text: string, last = false): Generator<ListRecord[]> {
    for (const records of this.#splitter.push(text, last)) yield this.#parse(records)
  }

  /** Parses records up to the first one with too many cells, which is reported. */
  #parse(records: readonly RawRecord[]): ListRecord[] {
    const wide = records.findIndex(({ text }) => this.#isTooWide(text))
    const parsed = this.#parseAll(wide === -1 ? records : records.slice(0, wide))
    const first = records[wide]
    if (first === undefined) return parsed
    throw tooManyColumns(countCells(first.text, this.#delimiter), first.line)
  }

  /** Parses records: those without a quote are cut at their delimiters, and need no parser. */
  #parseAll(records: readonly RawRecord[]): ListRecord[] {
    const quoted = records.filter(({ hasQuote }) => hasQuote)
    const parsed = quoted.length === 0 ? NOTHING_PARSED : this.#parseQuoted(quoted)
    return records.map(record => {
      const { line, ending } = record
      const cells = parsed.get(record)
      if (cells === undefined) return { line, ending, cells: record.text.split(this.#delimiter) }
      const inner =
        this.#isQuotedByLine || cells.length === 1 ? this.#parseLine(cells, line) : cells
      // One line of a list may be quoted as a cell. Then it has all cells of a row, and an address,
      // which a sentence below the rows does not have.
      const isRow = inner.length === this.#width && inner.some(hasAt)
      const isLine = this.#isQuotedByLine || isRow
      return { line, ending, cells: isLine ? inner : cells }
    })
  }

  /**
   * Parses records of equal width together. For each record that is wider or narrower than the
   * first one, csv-parse builds an error even if it throws none, which costs twelve times as much
   * as the parsing.
   */
  #parseQuoted(records: readonly RawRecord[]): ReadonlyMap<RawRecord, readonly string[]> {
    const cells = new Map<RawRecord, readonly string[]>()
    // Delimiters in quoted cells are counted too, which makes more groups but the same result.
    const groups = Map.groupBy(records, ({ text }) => countOf(text, this.#delimiter))
    for (const group of groups.values()) {
      const rows = this.#parseText(group.map(({ text }) => text).join('\n'))
      for (const [i, record] of group.entries()) cells.set(record, rows[i] ?? [])
    }
    return cells
  }

  /** Parses the cell that holds a whole line; other records are unchanged. */
  #parseLine(row: readonly string[], line: number): readonly string[] {
    const [cell = '', ...others] = row
    if (!cell.includes(this.#delimiter) || others.some(other => other.trim() !== '')) return row
    const options = { delimiter: this.#delimiter, line, columnsMax: this.#columnsMax }
    const inner = new RecordReader(options).push(cell, true)
    return inner.flatMap(({ cells }) => cells)
  }

  #isTooWide(text: string): boolean {
    // Delimiters in quoted cells are counted too, so it may have fewer cells.
    const mayBe =
      text.length >= this.#columnsMax && countOf(text, this.#delimiter) >= this.#columnsMax
    return mayBe && countCells(text, this.#delimiter) > this.#columnsMax
  }

  #parseText(text: string): string[][] {
    return parse(text, {
      delimiter: this.#delimiter,
      record_delimiter: '\n',
      relax_column_count: true,
      // A quote inside an unquoted cell is data.
      relax_quotes: true,
    })
  }
}

const NOTHING_PARSED: ReadonlyMap<RawRecord, readonly string[]> = new Map()

/**
 * Maximum number of columns of a list: twice that of a worksheet. It bounds the work for a row,
 * because a result has all columns of the header in each row, however short the row of the list is.
 */
export const COLUMNS_MAX = 32_768

/** `isCut` if only the start of the row was counted. */
export const tooManyColumns = (columns: number, line: number, isCut = false) =>
  new EvError(
    'bad_input',
    `The row on line ${formatNumber(line)} has ${isCut ? 'at least ' : ''}${formatNumber(columns)} columns, but a list has at most ${formatNumber(COLUMNS_MAX)}. Remove columns, or check the delimiter.`,
  )

function countOf(text: string, character: string): number {
  let count = 0
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) count += 1
  return count
}
