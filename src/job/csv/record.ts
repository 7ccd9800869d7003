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

  #parse(records: readonly RawRecord[]): ListRecord[] {
    const rows = parse(records.map(record => record.text).join('\n'), {
      delimiter: this.#delimiter,
      record_delimiter: '\n',
      relax_column_count: true,
      // A quote inside an unquoted cell is data.
      relax_quotes: true,
    })
    return records.map(({ line, ending }, i) => ({ line, ending, cells: rows[i] ?? [] }))
  }
}
