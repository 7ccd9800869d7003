import { COLUMNS_MAX } from '../csv/csv.ts'
import { EvError } from '../platform/error.ts'
import { formatNumber } from '../platform/format.ts'
import { decodeEscapes, formatCellNumber, formatDate } from './cell-text.ts'
import type { SharedStrings } from './shared-strings.ts'
import { parseXmlInSteps } from './xml.ts'

/** The parts of a workbook that cells of a sheet refer to. */
type CellContext = {
  readonly strings: SharedStrings | null
  /** Which cell styles are dates, by their number. */
  readonly dateStyles: readonly boolean[]
  readonly is1904: boolean
}

/** The limit of a row of text (`csv/record.ts`), checked here before the row is complete. */
const ROW_LENGTH_MAX = 1024 * 1024

/**
 * Cells of a sheet, with empty ones between others: a million rows of 50 columns. A cell in the
 * last column costs as much as 16,384.
 */
const CELLS_MAX = 50_000_000

/** Yields the rows of a sheet that have content, a few at a time, without empty cells at the end. */
export async function* readSheetRows(
  bytes: AsyncIterable<Uint8Array>,
  context: CellContext,
): AsyncGenerator<string[][]> {
  const sheet = new SheetHandler(context)
  for await (const _ of parseXmlInSteps(bytes, sheet)) {
    if (sheet.rows.length > 0) yield sheet.rows.splice(0)
  }
  if (sheet.rows.length > 0) yield sheet.rows
}

/** Collects the rows of `sheetData`. */
class SheetHandler {
  readonly rows: string[][] = []
  readonly #context: CellContext
  #cells: string[] | null = null
  #rowNumber = 0
  #rowLength = 0
  #cellCount = 0
  #column = 0
  #type = ''
  #style = 0
  /** Text of the current cell; `v`, or `t` in `is`. */
  #text = ''
  #isText = false
  #isPhonetic = false

  constructor(context: CellContext) {
    this.#context = context
  }

  open(name: string, attributes: Readonly<Record<string, string>>) {
    if (name === 'row') this.#openRow(attributes.r)
    else if (this.#cells === null) return
    else if (name === 'c') this.#openCell(attributes)
    else if (name === 'rPh') this.#isPhonetic = true
    else this.#isText = name === 'v' || (name === 't' && !this.#isPhonetic)
  }

  text(text: string) {
    if (this.#isText) this.#text += text
  }

  close(name: string) {
    this.#isText = false
    if (name === 'rPh') this.#isPhonetic = false
    else if (name === 'c' && this.#cells !== null) this.#closeCell(this.#cells)
    else if (name === 'row' && this.#cells !== null) {
      if (this.#cells.length > 0) this.#addRow(this.#cells)
      this.#cells = null
    }
  }

  #addRow(cells: string[]) {
    this.#cellCount += cells.length
    if (this.#cellCount > CELLS_MAX) {
      throw new EvError(
        'bad_input',
        `The sheet has more than ${formatNumber(CELLS_MAX)} cells, the limit for a sheet. Remove columns, or split it.`,
      )
    }
    this.rows.push(cells)
  }

  #openRow(number: string | undefined) {
    this.#rowNumber = Number(number) || this.#rowNumber + 1
    this.#cells = []
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
  }

  #closeCell(cells: string[]) {
    const text = this.#cellText()
    const column = this.#column
    this.#column += 1
    if (text === '') return
    while (cells.length < column) cells.push('')
    cells[column] = text
    this.#rowLength += text.length
    if (this.#rowLength > ROW_LENGTH_MAX) {
      throw new EvError(
        'bad_input',
        `Row ${formatNumber(this.#rowNumber)} of the sheet is longer than ${formatNumber(ROW_LENGTH_MAX)} characters, the limit for one row. Remove it.`,
      )
    }
  }

  #cellText(): string {
    const text = this.#text
    const { strings, dateStyles, is1904 } = this.#context
    if (text === '') return ''
    switch (this.#type) {
      case 's':
        return strings?.get(Number(text)) ?? ''
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
}

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
