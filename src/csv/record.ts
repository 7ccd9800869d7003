import { parse } from 'csv-parse/sync'
import { type RawRecord, RecordSplitter } from './record-splitter.ts'

/** One record of a list as it stands in the file. */
export type ListRecord = Pick<RawRecord, 'line' | 'ending'> & { readonly cells: readonly string[] }

/** Text in, records out: rows of any width, with quotes repaired. */
export class RecordReader {
  readonly #splitter: RecordSplitter
  readonly #delimiter: string

  constructor(options: { delimiter: string; line?: number }) {
    this.#splitter = new RecordSplitter(options)
    this.#delimiter = options.delimiter
  }

  /**
   * Takes the next piece of text; gives the records that it completes. `last` says that nothing follows.
   * Throws `bad_input` for a record beyond the limit.
   */
  push(text: string, last = false): ListRecord[] {
    return [...this.batches(text, last)].flat()
  }

  /** As `push`, but some records at a time: the text behind one stray quote may hold a million. */
  *batches(text: string, last = false): Generator<ListRecord[]> {
    for (const records of this.#splitter.push(text, last)) yield this.#parse(records)
  }

  /**
   * Parses records of one width together. For each record that is wider or narrower than the first one,
   * csv-parse builds an error even where it throws none, which costs twelve times as much as the parsing.
   */
  #parse(records: readonly RawRecord[]): ListRecord[] {
    const cells: (readonly string[])[] = []
    // Delimiters in quoted cells count too: that makes more groups, and no other result.
    const groups = Map.groupBy(records.keys(), i => records[i]?.text.split(this.#delimiter).length)
    for (const indexes of groups.values()) {
      const rows = this.#parseText(indexes.map(i => records[i]?.text).join('\n'))
      for (const [i, row] of rows.entries()) cells[indexes[i] ?? 0] = row
    }
    return records.map(({ line, ending }, i) => ({ line, ending, cells: cells[i] ?? [] }))
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
