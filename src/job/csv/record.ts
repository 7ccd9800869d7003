import { EvError } from '../../base/error.ts'

/** One record of a list as it stands in the file. */
export type ListRecord = {
  /** The line of the file on which it begins, from 1. */
  readonly line: number
  readonly cells: readonly string[]
  /** The line break that ended it; '' for the last record of a file without one. */
  readonly ending: '' | '\n' | '\r\n' | '\r'
}

/** A record longer than this (in UTF-16 units) is no row of a mailing list; the bound keeps memory flat. */
export const RECORD_LENGTH_MAX = 1024 * 1024

/**
 * Text in, records out: RFC 4180 with any of the three line breaks, blank lines left out, rows of any width.
 *
 * A quote out of place must not swallow the rows behind it, so a cell counts as quoted only if its
 * quoting works out: closed by a quote before a delimiter, a line break or the end. `""` is a quote.
 * A bare quote inside is kept as data as long as the cell still closes on the line where it began.
 * Otherwise the opening quote itself was data, and the cell ends where an unquoted one would.
 */
export class RecordReader {
  readonly #delimiter: number
  #text = ''
  #line: number
  /** After a vain attempt: do not try again before the text is this long, or tiny chunks cost a square. */
  #worthLength = 0

  constructor(options: { delimiter: string; line?: number }) {
    this.#delimiter = options.delimiter.charCodeAt(0)
    this.#line = options.line ?? 1
  }

  /** Takes the next piece of text; gives the records that it completes. `last` says that nothing follows. Throws `bad_input` for a record beyond the limit. */
  push(text: string, last = false): ListRecord[] {
    return [...this.batches(text, last)].flat()
  }

  /** As `push`, but some records at a time: one stray quote may set free a million characters of them. */
  *batches(text: string, last = false): Generator<ListRecord[]> {
    this.#text += text
    if (!last && this.#text.length < this.#worthLength) return
    let records: ListRecord[] = []
    let start = 0
    while (start < this.#text.length) {
      const end = this.#read(start, last, records)
      if (end === UNFINISHED) break
      start = end
      if (records.length < BATCH_RECORDS) continue
      yield records
      records = []
    }
    this.#text = this.#text.slice(start)
    this.#worthLength = start > 0 ? 0 : this.#text.length * 1.5
    if (records.length > 0) yield records
  }

  /** Reads the record at `start` into `records` and gives the index behind it, or UNFINISHED. */
  #read(start: number, last: boolean, records: ListRecord[]): number {
    const text = this.#text
    const cells: string[] = []
    let at = start
    let quoted = false
    for (;;) {
      let end = NOT_QUOTED
      if (text.charCodeAt(at) === QUOTE) {
        const closing = this.#closingQuote(at, start, last)
        if (closing === UNFINISHED) return UNFINISHED
        if (closing !== NOT_QUOTED) {
          quoted = true
          cells.push(text.slice(at + 1, closing).replaceAll('""', '"'))
          end = skipBlanks(text, closing + 1, this.#delimiter)
        }
      }
      if (end === NOT_QUOTED) {
        end = this.#endOfPlainCell(at)
        cells.push(text.slice(at, end))
      }
      if (end - start > RECORD_LENGTH_MAX) throw this.#tooLong()
      if (end < text.length && text.charCodeAt(end) === this.#delimiter) {
        at = end + 1
        continue
      }
      const ending = endingAt(text, end, last)
      if (ending === null) return UNFINISHED
      const blank = !quoted && cells.length === 1 && BLANK.test(cells[0] ?? '')
      if (!blank) records.push({ line: this.#line, cells, ending })
      this.#line += quoted ? countLines(text, start, end) + 1 : 1
      return end + ending.length
    }
  }

  /** The index of the quote that closes the cell opened at `open`, NOT_QUOTED, or UNFINISHED when more text may tell. */
  #closingQuote(open: number, start: number, last: boolean): number {
    const text = this.#text
    let from = open + 1
    // Set by a quote out of place: the cell must now close before this line break.
    let before = Number.POSITIVE_INFINITY
    for (;;) {
      const quote = text.indexOf('"', from)
      if (quote === -1 || quote - start > RECORD_LENGTH_MAX || quote > before) {
        const hopeless = last || text.length - start > RECORD_LENGTH_MAX || before < text.length
        return hopeless ? NOT_QUOTED : UNFINISHED
      }
      if (text.charCodeAt(quote + 1) === QUOTE) {
        from = quote + 2
        continue
      }
      const next = skipBlanks(text, quote + 1, this.#delimiter)
      if (next >= text.length) return last ? quote : UNFINISHED
      const code = text.charCodeAt(next)
      if (code === this.#delimiter || code === LF || code === CR) return quote
      if (before === Number.POSITIVE_INFINITY) before = lineBreakAfter(text, open)
      from = quote + 1
    }
  }

  #endOfPlainCell(from: number): number {
    const text = this.#text
    for (let i = from; i < text.length; i += 1) {
      const code = text.charCodeAt(i)
      if (code === this.#delimiter || code === LF || code === CR) return i
    }
    return text.length
  }

  #tooLong(): EvError {
    return new EvError(
      'bad_input',
      `The row on line ${this.#line} is longer than ${RECORD_LENGTH_MAX.toLocaleString('en')} characters, which is the most a row may have. Take it out, or mend its line breaks.`,
    )
  }
}

/** Few enough to die young: V8 puts what survives into memory that it seldom collects. */
const BATCH_RECORDS = 500

const QUOTE = 0x22
const LF = 0x0a
const CR = 0x0d
const UNFINISHED = -1
const NOT_QUOTED = -2
/** White space only; Ctrl-Z is the end-of-file mark of DOS programs. */
const BLANK = /^[\s\x1a]*$/

/** The index of the first character from `at` on that is neither a space nor a tab (unless tab separates cells). */
function skipBlanks(text: string, at: number, delimiter: number): number {
  let i = at
  for (; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code === delimiter || (code !== 0x20 && code !== 0x09)) break
  }
  return i
}

/** The line break at `at`; '' at the end of the last record; null when more text may tell. */
function endingAt(text: string, at: number, last: boolean): ListRecord['ending'] | null {
  if (at >= text.length) return last ? '' : null
  if (text.charCodeAt(at) === LF) return '\n'
  if (at + 1 >= text.length) return last ? '\r' : null
  return text.charCodeAt(at + 1) === LF ? '\r\n' : '\r'
}

/** The index of the first line break behind `from`, or the length of the text. */
function lineBreakAfter(text: string, from: number): number {
  for (let i = from; i < text.length; i += 1) {
    const code = text.charCodeAt(i)
    if (code === LF || code === CR) return i
  }
  return text.length
}

const countLines = (text: string, start: number, end: number) =>
  text.slice(start, end).match(/\r\n|\r|\n/g)?.length ?? 0
