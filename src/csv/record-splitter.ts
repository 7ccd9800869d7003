import { EvError } from '../platform/error.ts'

/**
 * How a list quotes cells. `doubled`: `""` is a quote (RFC 4180). `backslash`: `\"` is one too, and
 * outside quotes a backslash escapes a delimiter or a line break, as MySQL and Spark write it.
 * `single`: cells are in apostrophes, of which `''` is one. `line`: each line is quoted as one cell,
 * which is left when a CSV file is opened as one column and saved again.
 */
export type Quoting = 'doubled' | 'backslash' | 'single' | 'line'

export type SplittingOptions = {
  readonly delimiter: string
  /** Line of the file on which the text starts, from 1. */
  readonly line?: number
  readonly quoting?: Quoting
  /** Number of cells of most records; left out if it is not known. */
  readonly width?: number
  /** The line break of most records; left out if it is not known. */
  readonly newline?: '\n' | '\r\n' | '\r'
}

/** The text of one record of a list. */
export type RawRecord = {
  /** Line of the file on which the record starts, from 1. */
  readonly line: number
  /** Well-formed CSV (RFC 4180) with repaired quotes, without the final line break. */
  readonly text: string
  /** Whether the text has a quotation mark. */
  readonly hasQuote: boolean
  /** The line break that ends the record; '' for the last record of a file without one. */
  readonly ending: '' | '\n' | '\r\n' | '\r'
}

/** A record with the index of its end, before its line break. */
type ScannedRecord = Pick<RawRecord, 'text' | 'hasQuote' | 'ending'> & {
  readonly end: number
  /** Whether a cell may have a line break, because it is quoted or has an escape. */
  readonly isQuoted: boolean
  /** Whether a cell without quotes has an escaped delimiter or line break. */
  readonly isEscaped: boolean
}

/** How the characters are read that may be data or not. */
type Reading = {
  readonly isBackslash: boolean
  /** A CR alone before this index is data. */
  readonly crEnd: number
}

const NO_READINGS: readonly Reading[] = []

/** Where the scan of one record starts, and how it reads the text. */
type Scan = Reading & {
  readonly start: number
  /** Whether the text ends with the list. */
  readonly last: boolean
}

/** A cell, or a part of it, with the indexes of its start and its end. */
type ReadCell = {
  readonly start: number
  readonly end: number
  /** The text that replaces the cell in the record, without the quotes; null to keep the cell. */
  readonly text: string | null
  readonly isQuoted: boolean
}

/**
 * Number of CRs that are read as data in one record. It bounds the work for a part of a list whose
 * records all end with a CR: at most so many lines are read for each.
 */
const CR_DATA_MAX = 50

/**
 * Maximum length of a record in UTF-16 units. It bounds memory; rows of mailing lists are far
 * shorter.
 */
export const RECORD_LENGTH_MAX = 1024 * 1024

/**
 * Maximum number of line breaks in a quoted cell. It bounds how many rows an unclosed quote can
 * hide if a later quote happens to match it. Excel allows 253 line feeds in a cell ("Excel
 * specifications and limits"); notes and messages exported by other programs have a few hundred.
 */
export const CELL_LINE_BREAKS_MAX = 1_000

/**
 * Splits text into records and repairs their quotes. Accepts chunks of any length and all three
 * line breaks; omits blank lines.
 *
 * A CSV parser reads from an unmatched opening quote to the next quote, however many rows lie
 * between. Here a cell counts as quoted only if a quote before a delimiter, a line break or the end
 * of the text closes it. Blanks around the quotes are skipped, and `""` is a quote. A bare quote
 * inside is data if the cell still closes on the line where it starts. Otherwise the opening quote
 * itself is data, and the cell ends where an unquoted cell would.
 *
 * A backslash before a quote, a delimiter or a line break may escape it, or be data, as in
 * `"C:\dir\"`. If a record that has one does not have the usual number of cells, and has it in the
 * other reading, that one applies. The same holds for a CR alone that ends a record of a list with
 * other line breaks: clients of MySQL escape the LF of a text from Windows, and not its CR.
 */
export class RecordSplitter {
  readonly #delimiter: number
  readonly #delimiterText: string
  readonly #isBackslash: boolean
  /** The character that quotes cells. */
  readonly #quote: '"' | "'"
  readonly #width: number | undefined
  readonly #newline: SplittingOptions['newline']
  #text = ''
  #line: number
  /**
   * Set after a failed attempt: the next one waits until the text has this length, because a retry
   * after every small chunk would take quadratic time.
   */
  #retryLength = 0
  /** End of the line found by the last lookup. */
  #lineEnd = -1
  /** No quote before this index closes a cell, as the last failed search found. */
  #noClosingBefore = -1

  readonly #escape: RegExp
  /** Index of the next escape, or of the end of the text; searched again once it is passed. */
  #nextEscape = -1

  constructor({ delimiter, line = 1, quoting, width, newline }: SplittingOptions) {
    this.#delimiter = delimiter.charCodeAt(0)
    this.#delimiterText = delimiter
    this.#escape = new RegExp(escapePattern(delimiter), 'g')
    this.#isBackslash = quoting === 'backslash'
    this.#quote = quoting === 'single' ? "'" : '"'
    this.#width = width
    this.#newline = newline
    this.#line = line
  }

  /**
   * Adds the next chunk of text and yields the records that it completes, in batches; `last` marks
   * the final chunk. Throws EvError `bad_input` for a record beyond the limit.
   */
  *push(text: string, last = false): Generator<RawRecord[]> {
    this.#text += text
    if (!last && this.#text.length < this.#retryLength) return
    this.#resetSearches()
    this.#nextEscape = -1
    let records: RawRecord[] = []
    let batchStart = 0
    let start = 0
    while (start < this.#text.length) {
      const end = this.#readRecord(start, last, records)
      if (end === UNFINISHED) break
      start = end
      const isFull = records.length >= BATCH_RECORDS_MAX || start - batchStart >= BATCH_LENGTH_MAX
      if (!isFull) continue
      if (records.length > 0) yield records
      records = []
      batchStart = start
    }
    this.#text = this.#text.slice(start)
    this.#retryLength = start > 0 ? 0 : this.#text.length * 1.5
    if (records.length > 0) yield records
  }

  /** Reads the record at `start` into `records`. Returns the index after it, or UNFINISHED. */
  #readRecord(start: number, last: boolean, records: RawRecord[]): number {
    const scanned = this.#scanBest(start, last)
    if (scanned === null) return UNFINISHED
    const { text, hasQuote, end, ending, isQuoted } = scanned
    if (end - start > RECORD_LENGTH_MAX) throw this.#tooLong()
    if (!this.#isBlank(text)) records.push({ line: this.#line, text, hasQuote, ending })
    this.#line += isQuoted ? countLineBreaks(this.#text, start, end) + 1 : 1
    return end + ending.length
  }

  /** Scans the record at `start` in the reading that fits; null if more text is needed. */
  #scanBest(start: number, last: boolean): ScannedRecord | null {
    const scanned = this.#scan({ start, last, isBackslash: this.#isBackslash, crEnd: 0 })
    if (scanned === null || this.#width === undefined) return scanned
    for (const reading of this.#otherReadings(start, scanned)) {
      this.#resetSearches()
      const other = this.#scan({ start, last, ...reading })
      this.#resetSearches()
      if (other === null || this.#countCells(other) === this.#width) return other
    }
    return scanned
  }

  /** Returns how a record with an unusual number of cells can be read instead. */
  #otherReadings(start: number, scanned: ScannedRecord): readonly Reading[] {
    const hasEscape =
      this.#quote === '"' && (scanned.isEscaped || this.#indexOfEscape(start) < scanned.end)
    const isCr = scanned.ending === '\r' && (this.#newline ?? '\r') !== '\r'
    if (this.#width === undefined || !(hasEscape || isCr)) return NO_READINGS
    const count = this.#countCells(scanned)
    if (count === this.#width) return NO_READINGS
    const isBackslash = this.#isBackslash
    const others: Reading[] = []
    if (hasEscape) others.push({ isBackslash: !isBackslash, crEnd: 0 })
    if (isCr && count < this.#width)
      others.push({ isBackslash, crEnd: this.#endOfCrs(scanned.end) })
    return others
  }

  #countCells({ text }: ScannedRecord): number {
    return countCells(text, this.#delimiterText)
  }

  /**
   * Scans one record: copies what is well-formed, and replaces the cells that are not. Returns null
   * if more text is needed.
   */
  #scan(scan: Scan): ScannedRecord | null {
    const { start, last, isBackslash } = scan
    const text = this.#text
    const pattern = STOPS[this.#quote][isBackslash ? 'backslash' : 'plain']
    let repaired = ''
    let copied = start
    let hasQuote = false
    let isQuoted = false
    let isEscaped = false
    let at = search(pattern, text, start)
    while (at < text.length) {
      const isQuote = this.#isQuoteAt(at)
      hasQuote ||= isQuote
      const opening = isQuote ? this.#startOfQuoted(at, start) : at
      if (opening === NONE) {
        at = search(pattern, text, at + 1)
        continue
      }
      const cell = isQuote
        ? this.#readQuoted(opening, at, scan)
        : this.#readEscaped(at, copied, scan)
      if (cell === 'unfinished') return null
      if (cell === 'record-ends') break
      if (cell.text !== null) {
        repaired += text.slice(copied, cell.start) + quote(cell.text)
        copied = cell.end
        isQuoted ||= cell.isQuoted
        isEscaped ||= !isQuote
      }
      at = search(pattern, text, cell.end)
    }
    const ending = at - start > RECORD_LENGTH_MAX ? '' : lineBreakAt(text, at, last)
    if (ending === null) return null
    return {
      text: repaired + text.slice(copied, at),
      hasQuote: hasQuote || isEscaped,
      end: at,
      ending,
      isQuoted: isQuoted || isEscaped,
      isEscaped,
    }
  }

  /** Reads the cell at `start` whose first character, beside blanks, is the quote at `open`. */
  #readQuoted(start: number, open: number, scan: Scan): ReadCell | 'unfinished' {
    const text = this.#text
    // In a list of apostrophes, a quotation mark is data.
    const closing = text[open] === this.#quote ? this.#closingQuote(open, scan) : NONE
    if (closing === UNFINISHED) return 'unfinished'
    if (closing === NONE) {
      const end = this.#endOfPlainCell(open)
      return { start, end, text: text.slice(start, end), isQuoted: false }
    }
    const inner = text.slice(open + 1, closing)
    const end = this.#skipBlanks(closing + 1)
    return {
      start,
      end,
      text: unescapeCell(inner, this.#quote, scan.isBackslash),
      isQuoted: true,
    }
  }

  /**
   * Reads the cell without quotes around the escape or the line break at `at`; the record is
   * repaired up to `from`. The escape of another character is left as it is.
   */
  #readEscaped(at: number, from: number, scan: Scan): ReadCell | 'unfinished' | 'record-ends' {
    const { start: recordStart, last, isBackslash } = scan
    const text = this.#text
    const next = this.#afterData(at, scan)
    if (next === NONE) return 'record-ends'
    if (next >= text.length && !last) return 'unfinished'
    const isBreak = text.charCodeAt(at) === CR
    const isSpecial = isBreak || (this.#endsCell(at + 1) && at + 1 < text.length)
    if (!isSpecial) return { start: at, end: next, text: null, isQuoted: false }
    const end = this.#endOfDataCell(next, scan)
    if (end >= text.length && !last && end - recordStart <= RECORD_LENGTH_MAX) return 'unfinished'
    const start = this.#startOfCell(at, from)
    const cell = text.slice(start, end)
    return { start, end, text: isBackslash ? this.#unescape(cell) : cell, isQuoted: false }
  }

  #isQuoteAt(at: number): boolean {
    const code = this.#text.charCodeAt(at)
    return code === QUOTE || code === this.#quote.charCodeAt(0)
  }

  /** Call it before a search may start before an earlier one. */
  #resetSearches() {
    this.#lineEnd = -1
    this.#noClosingBefore = -1
  }

  #indexOfEscape(from: number): number {
    if (this.#nextEscape < from) this.#nextEscape = search(this.#escape, this.#text, from)
    return this.#nextEscape
  }

  /**
   * Returns the index of the quote that closes the cell opened at `open`, NONE, or UNFINISHED if
   * more text is needed.
   */
  #closingQuote(open: number, { start, last, isBackslash }: Scan): number {
    const text = this.#text
    let from = open + 1
    // Set by a bare quote: the cell must close before this line break.
    let before = Number.POSITIVE_INFINITY
    for (;;) {
      const quote = text.indexOf(this.#quote, from)
      if (quote === -1 || quote - start > RECORD_LENGTH_MAX || quote > before) {
        if (before !== Number.POSITIVE_INFINITY) this.#noClosingBefore = before
        const isFinal = last || text.length - start > RECORD_LENGTH_MAX || before < text.length
        return isFinal || this.#isOutOfReach(open, text.length) ? NONE : UNFINISHED
      }
      if (isBackslash && isEscaped(text, quote, open)) {
        from = quote + 1
        continue
      }
      if (text[quote + 1] === this.#quote) {
        from = quote + 2
        continue
      }
      const next = this.#skipBlanks(quote + 1)
      if (next >= text.length && !last) return UNFINISHED
      if (this.#endsCell(next)) return this.#isOutOfReach(open, quote) ? NONE : quote
      // A line of bare quotes is searched once, not once per quote.
      if (quote < this.#noClosingBefore) return NONE
      if (before === Number.POSITIVE_INFINITY) before = this.#endOfLine(open)
      from = quote + 1
    }
  }

  #endsCell(at: number): boolean {
    const code = this.#text.charCodeAt(at)
    return at >= this.#text.length || code === this.#delimiter || code === LF || code === CR
  }

  #isOutOfReach(open: number, quote: number): boolean {
    if (quote <= this.#endOfLine(open)) return false
    return countLineBreaks(this.#text, open, quote, CELL_LINE_BREAKS_MAX + 1) > CELL_LINE_BREAKS_MAX
  }

  #endOfPlainCell(from: number): number {
    let at = from
    while (!this.#endsCell(at)) at += 1
    return at
  }

  /** Returns the index of the first character of the cell at `at`, which is not before `from`. */
  #startOfCell(at: number, from: number): number {
    let start = at
    while (start > from && this.#text.charCodeAt(start - 1) !== this.#delimiter) start -= 1
    return start
  }

  /** Like `#endOfPlainCell`, but what the reading takes for data does not end the cell. */
  #endOfDataCell(from: number, reading: Reading): number {
    for (let at = from; at < this.#text.length; ) {
      const next = this.#afterData(at, reading)
      if (next !== NONE) at = next
      else if (this.#endsCell(at)) return at
      else at += 1
    }
    return this.#text.length
  }

  /**
   * Returns the index after an escape, or after a CR that is data; NONE if neither is at `at`.
   */
  #afterData(at: number, { isBackslash, crEnd }: Reading): number {
    const text = this.#text
    const code = text.charCodeAt(at)
    if (code === BACKSLASH && isBackslash) return afterEscape(text, at)
    // A CR at the end of the text may be half of a CRLF, or the last line break.
    const isData = code === CR && at < crEnd && at + 1 < text.length
    return isData && text.charCodeAt(at + 1) !== LF ? at + 1 : NONE
  }

  /** Returns the index after `CR_DATA_MAX` CRs, of which the first is at `from`. */
  #endOfCrs(from: number): number {
    let at = from
    for (let count = 1; count < CR_DATA_MAX && at !== -1; count++)
      at = this.#text.indexOf('\r', at + 1)
    return at === -1 ? this.#text.length : at + 1
  }

  /** Removes the backslashes that escape; others, as in `\N`, are data. */
  #unescape(cell: string): string {
    return cell.replace(ESCAPED, (written, character: string) =>
      character === this.#delimiterText || ESCAPABLE.test(character) ? character : written,
    )
  }

  /**
   * Returns the start of the cell of which the quote at `open` is the first character, beside
   * spaces and tabs; NONE if the quote is inside of a cell.
   */
  #startOfQuoted(open: number, recordStart: number): number {
    let start = open
    while (start > recordStart && this.#isBlankAt(start - 1)) start -= 1
    const isFirst = start === recordStart || this.#text.charCodeAt(start - 1) === this.#delimiter
    return isFirst ? start : NONE
  }

  #isBlankAt(at: number): boolean {
    const code = this.#text.charCodeAt(at)
    return code !== this.#delimiter && (code === SPACE || code === TAB)
  }

  /**
   * Returns the index of the first character from `at` on that is the delimiter or neither a space
   * nor a tab.
   */
  #skipBlanks(at: number): number {
    let next = at
    while (this.#isBlankAt(next)) next += 1
    return next
  }

  /**
   * Returns the index of the first line break after `from`, or the length of the text. `from` must
   * not decrease between calls.
   */
  #endOfLine(from: number): number {
    if (this.#lineEnd < from) this.#lineEnd = search(LINE_BREAK, this.#text, from)
    return this.#lineEnd
  }

  /** Returns true if a line is a single cell of white space. */
  #isBlank(line: string): boolean {
    return BLANK.test(line) && !line.includes(String.fromCharCode(this.#delimiter))
  }

  #tooLong(): EvError {
    return new EvError(
      'bad_input',
      `The row on line ${this.#line} is longer than ${RECORD_LENGTH_MAX.toLocaleString('en')} characters, the limit for one row. Remove it or fix its line breaks.`,
    )
  }
}

/** Kept small so that batches are collected early: V8 rarely collects memory that has survived. */
const BATCH_RECORDS_MAX = 500
/** Text parsed in one batch, excluding the last record: some milliseconds of work. */
const BATCH_LENGTH_MAX = 64 * 1024

const QUOTE = 0x22
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const TAB = 0x09
const BACKSLASH = 0x5c
const UNFINISHED = -1
const NONE = -2
const LINE_BREAK = /[\r\n]/g
/** The characters at which the search for the end of a record stops, by quote and reading. */
const STOPS = {
  '"': { plain: /["\r\n]/g, backslash: /["\\\r\n]/g },
  "'": { plain: /['"\r\n]/g, backslash: /['"\\\r\n]/g },
}
const ESCAPED = /\\(\r\n|.)/gs
/** The characters that a backslash escapes, besides the delimiter. */
const ESCAPABLE = /^(?:\r\n|["\\\r\n])$/
const LINE_BREAK_SEQUENCE = /\r\n|\r|\n/g
/** White space only; Ctrl-Z is the end-of-file mark of DOS programs. */
const BLANK = /^[\s\x1a]*$/

/** Matches a backslash before a character that it may escape. */
export const escapePattern = (delimiter: string) => new RegExp(`\\\\(?=["\\r\\n${delimiter}])`)

/**
 * Returns the index of the first match from `from` on, or the length of the text. `pattern` must
 * match one character.
 */
function search(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from
  return pattern.test(text) ? pattern.lastIndex - 1 : text.length
}

/**
 * Returns the line break at `at`; '' at the end of the last record; null if more text is needed.
 */
function lineBreakAt(text: string, at: number, last: boolean): RawRecord['ending'] | null {
  if (at >= text.length) return last ? '' : null
  if (text.charCodeAt(at) === LF) return '\n'
  if (at + 1 >= text.length) return last ? '\r' : null
  return text.charCodeAt(at + 1) === LF ? '\r\n' : '\r'
}

/** Returns the index after a backslash and the character, or the CRLF, that it may escape. */
const afterEscape = (text: string, at: number) =>
  at + (text.charCodeAt(at + 1) === CR && text.charCodeAt(at + 2) === LF ? 3 : 2)

/** Returns a cell in quotes (RFC 4180). */
const quote = (cell: string) => `"${cell.replaceAll('"', '""')}"`

/** Whether an odd number of backslashes, after the quote at `open`, precedes a quote. */
function isEscaped(text: string, quote: number, open: number): boolean {
  let at = quote
  while (at - 1 > open && text.charCodeAt(at - 1) === BACKSLASH) at -= 1
  return (quote - at) % 2 === 1
}

const unescapeCell = (cell: string, quote: string, isBackslash: boolean) =>
  isBackslash && cell.includes('\\')
    ? cell.replace(/\\(["\\])|""/g, (_, escaped?: string) => escaped ?? '"')
    : cell.replaceAll(quote + quote, quote)

function countLineBreaks(text: string, start: number, end: number, max = Number.POSITIVE_INFINITY) {
  LINE_BREAK_SEQUENCE.lastIndex = start
  let count = 0
  while (count < max && LINE_BREAK_SEQUENCE.test(text) && LINE_BREAK_SEQUENCE.lastIndex <= end)
    count += 1
  return count
}

/** Returns the number of cells of a record with repaired quotes. */
export function countCells(text: string, delimiter: string): number {
  let cells = 1
  for (let at = 0; ; cells += 1) {
    const end = text.indexOf(delimiter, text.charCodeAt(at) === QUOTE ? endOfQuoted(text, at) : at)
    if (end === -1) return cells
    at = end + 1
  }
}

/** Returns the index after the closing quote of the cell at `open`; `""` is a quote. */
function endOfQuoted(text: string, open: number): number {
  for (let at = open + 1; ; at += 2) {
    at = text.indexOf('"', at)
    if (at === -1) return text.length
    if (text.charCodeAt(at + 1) !== QUOTE) return at + 1
  }
}
