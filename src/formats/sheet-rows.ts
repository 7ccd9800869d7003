import { BLANK_ROWS_MAX } from '../csv/csv.ts'
import { nameHint } from '../csv/header-names.ts'
import { EvError } from '../platform/error.ts'
import { formatNumber } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import { columnName, decodeEscapes, formatCellNumber, formatDate } from './cell-text.ts'
import type { SharedStrings } from './shared-strings.ts'
import { COLUMNS_MAX } from './sheet-limits.ts'
import { parseXmlInSteps } from './xml.ts'

/** The parts of a workbook that cells of a sheet refer to. */
type CellContext = {
  readonly strings: SharedStrings | null
  /** Which cell styles are dates, by their number. */
  readonly dateStyles: readonly boolean[]
  readonly is1904: boolean
}

/** The limit of a row of text (`csv/record-splitter.ts`), checked here before the row is complete. */
const ROW_LENGTH_MAX = 1024 * 1024

/**
 * Cells of a sheet, with empty ones between others: a million rows of 50 columns. A cell in the
 * last column costs as much as 16,384.
 */
const CELLS_MAX = 50_000_000

/** A row of a sheet. Its empty cells take no memory. */
export type SheetRow = {
  /** Cells that are not empty by their column, from 0 and ascending. */
  readonly cells: readonly (readonly [column: number, text: string])[]
  /** Number of columns up to the last cell. */
  readonly width: number
  /** Length of all texts in UTF-16 units. */
  readonly length: number
}

/** Stands for each blank row, as the limit of cells does not count those. */
const BLANK_ROW: SheetRow = { cells: [], width: 0, length: 0 }

/**
 * Yields the rows of a sheet from the first to the last with content, a few at a time. Of a long
 * run of blank rows it yields one more than `readList` takes for rows.
 */
export async function* readSheetRows(
  bytes: AsyncIterable<Uint8Array>,
  context: CellContext,
): AsyncGenerator<SheetRow[]> {
  const sheet = new SheetHandler(context)
  for await (const _ of parseXmlInSteps(bytes, sheet)) {
    if (sheet.rows.length > 0) yield sheet.rows.splice(0)
  }
  sheet.checkResults()
  if (sheet.rows.length > 0) yield sheet.rows
}

/** Collects the rows of `sheetData`. */
class SheetHandler {
  readonly rows: SheetRow[] = []
  readonly #context: CellContext
  /** Cells of the current row; null between rows. */
  #cells: Map<number, string> | null = null
  #rowNumber = 0
  /** Number of the last row with content. */
  #lastNumber = 0
  #rowLength = 0
  /** Cells of the first row with content, for messages. */
  #firstRow: SheetRow['cells'] | null = null
  #cellCount = 0
  #column = 0
  #type = ''
  #style = 0
  /** Text of the current cell; `v`, or `t` in `is`. */
  #text = ''
  #isText = false
  #isPhonetic = false
  #isFormula = false
  #hasValue = false
  /** The first formula of each column whose formulas all have an empty text or 0 as result. */
  readonly #emptyResults = new Map<number, string>()
  /** Columns with another result. */
  readonly #withResults = new Set<number>()

  constructor(context: CellContext) {
    this.#context = context
  }

  open(name: string, attributes: Readonly<Record<string, string>>) {
    if (name === 'row') this.#openRow(attributes.r)
    else if (this.#cells === null) return
    else if (name === 'c') this.#openCell(attributes)
    else if (name === 'rPh') this.#isPhonetic = true
    else {
      this.#isFormula ||= name === 'f'
      this.#hasValue ||= name === 'v'
      this.#isText = name === 'v' || (name === 't' && !this.#isPhonetic)
    }
  }

  text(text: string) {
    if (!this.#isText) return
    this.#text += text
    // Checked before the end of the cell, whose parts may have any length together.
    if (this.#rowLength + this.#text.length > ROW_LENGTH_MAX) throw this.#tooLong()
  }

  close(name: string) {
    this.#isText = false
    if (name === 'rPh') this.#isPhonetic = false
    else if (name === 'c' && this.#cells !== null) this.#closeCell(this.#cells)
    else if (name === 'row' && this.#cells !== null) {
      if (this.#cells.size > 0) this.#addRow(this.#cells)
      this.#cells = null
    }
  }

  /**
   * Throws if no formula of the address column has a result: some programs write an empty text or,
   * as XlsxWriter, 0 where they have calculated none.
   */
  checkResults() {
    for (const [column, text] of this.#firstRow ?? []) {
      const name = this.#emptyResults.get(column)
      const isKnown = name === undefined || this.#withResults.has(column)
      if (!isKnown && nameHint(text) === 'exact') throw this.#noResult(name)
    }
  }

  #addRow(found: ReadonlyMap<number, string>) {
    // Almost always in order already.
    const cells = [...found].sort(([one], [other]) => one - other)
    const width = (cells.at(-1)?.[0] ?? 0) + 1
    this.#cellCount += width
    if (this.#cellCount > CELLS_MAX) {
      throw new EvError(
        'bad_input',
        `The sheet has more than ${formatNumber(CELLS_MAX)} cells, the limit for a sheet. Remove columns, or split it.`,
      )
    }
    if (this.#firstRow !== null) this.#addBlankRows(this.#rowNumber - this.#lastNumber - 1)
    this.#firstRow ??= cells
    this.#lastNumber = this.#rowNumber
    this.rows.push({ cells, width, length: this.#rowLength })
  }

  /** A blank row is one without cells, or one that the sheet leaves out. */
  #addBlankRows(count: number) {
    for (let i = 0; i < Math.min(count, BLANK_ROWS_MAX + 1); i += 1) this.rows.push(BLANK_ROW)
  }

  #openRow(number: string | undefined) {
    this.#rowNumber = Number(number) || this.#rowNumber + 1
    this.#cells = new Map()
    this.#rowLength = 0
    this.#column = 0
  }

  #openCell({ r, t = 'n', s }: Readonly<Record<string, string>>) {
    if (r !== undefined) this.#column = columnOf(r)
    if (this.#column >= COLUMNS_MAX) throw new Error('a row has too many cells')
    this.#type = t
    this.#style = Number(s ?? 0)
    this.#text = ''
    this.#isPhonetic = false
    this.#isFormula = false
    this.#hasValue = false
  }

  #closeCell(cells: Map<number, string>) {
    const text = this.#cellText()
    const column = this.#column
    this.#column += 1
    if (text === '') return
    cells.set(column, text)
    this.#rowLength += text.length
    if (this.#rowLength > ROW_LENGTH_MAX) throw this.#tooLong()
  }

  #cellText(): string {
    const text = this.#text
    const { strings, dateStyles, is1904 } = this.#context
    if (this.#isFormula) this.#addResult(text)
    if (text === '') return ''
    switch (this.#type) {
      case 's': {
        const shared = strings?.get(Number(text)) ?? null
        if (shared === null) throw this.#noSharedText()
        return shared
      }
      case 'b':
        return text === '1' ? 'TRUE' : 'FALSE'
      case 'n': {
        const date = dateStyles[this.#style] ? formatDate(Number(text), { is1904 }) : null
        return date ?? formatCellNumber(text)
      }
      default:
        // Formula results, inline strings, errors such as #N/A, and dates in ISO 8601.
        return decodeEscapes(text)
    }
  }

  #addResult(text: string) {
    // The result of a formula may be an empty text, which is stored as one.
    const isEmptyText = this.#hasValue && this.#type === 'str'
    if (text === '' && !isEmptyText) throw this.#noResult(this.#cellName())
    if (text !== '' && text !== '0') this.#withResults.add(this.#column)
    else if (!this.#emptyResults.has(this.#column)) {
      this.#emptyResults.set(this.#column, this.#cellName())
    }
  }

  #tooLong(): EvError {
    return new EvError(
      'bad_input',
      `Row ${formatNumber(this.#rowNumber)} of the sheet is longer than ${formatNumber(ROW_LENGTH_MAX)} characters, the limit for one row. Remove it.`,
    )
  }

  #noResult(cellName: string): EvError {
    return new EvError(
      'bad_input',
      `In the sheet, ${cellName} has a formula without a stored result, as in a workbook that a program has written. Open and save it in a spreadsheet program, or replace the formulas with their values.`,
    )
  }

  #noSharedText(): EvError {
    const cause =
      this.#context.strings === null
        ? 'the shared strings of the workbook are missing'
        : 'the shared strings of the workbook do not have it'
    return new EvError(
      'bad_input',
      `The workbook is damaged: ${this.#cellName()} refers to a shared text, but ${cause}. Create it again, or save the list as CSV.`,
    )
  }

  /** Names the current cell for a message: `cell B2 (column "Email")`. */
  #cellName(): string {
    const name = this.#firstRow?.find(([column]) => column === this.#column)?.[1]
    const column = name === undefined ? '' : ` (column "${sanitizeText(name, NAME_LENGTH_SHOWN)}")`
    return `cell ${columnName(this.#column)}${this.#rowNumber}${column}`
  }
}

/** Enough of the name of a column to recognize it. */
const NAME_LENGTH_SHOWN = 40

/** Returns the index of the column of a reference such as `AB12`, from 0. */
function columnOf(reference: string): number {
  let column = 0
  for (let i = 0; i < reference.length; i += 1) {
    const letter = reference.charCodeAt(i) - 0x40
    if (letter < 1 || letter > 26) break
    column = column * 26 + letter
  }
  if (column === 0) throw new Error('a cell has no column')
  return column - 1
}
