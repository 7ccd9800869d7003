import {
  arrangeRow,
  columnNames,
  isFormula,
  type ListDialect,
  type OutputRow,
  type Value,
} from '../csv/csv.ts'
import { EvError } from '../platform/error.ts'
import { formatNumber } from '../platform/format.ts'
import { columnName } from './cell-text.ts'
import { COLUMNS_MAX } from './sheet-limits.ts'

/** Cell styles of the workbook, by their position in `cellXfs`. */
const TEXT_STYLE = 1
const HEADER_STYLE = 2

/** Formats the rows of a worksheet as text, for `zipSheet`, in the order in which they are written. */
type SheetWriter = {
  /** Returns the text before the first row, with the header row. Throws EvError `bad_input`. */
  header(): string
  rows(rows: readonly OutputRow[]): string[]
  readonly end: string
}

/** "Excel specifications and limits". Longer cells are truncated. */
const CELL_LENGTH_MAX = 32_767

/** Writes the columns that `createRowWriter` writes. Cells are text or numbers, never formulas. */
export function createSheetWriter(dialect: ListDialect, added: readonly string[]): SheetWriter {
  const references: string[] = []
  let rowNumber = 0
  const row = (values: readonly Value[], style: number) => {
    rowNumber += 1
    let text = `<row r="${rowNumber}">`
    for (const [column, value] of values.entries()) {
      references[column] ??= columnName(column)
      text += formatCell(`${references[column]}${rowNumber}`, value, style)
    }
    return `${text}</row>`
  }
  return {
    header: () => {
      const names = [...columnNames(dialect), ...added]
      if (names.length > COLUMNS_MAX) throw tooManyColumns(names.length)
      return BEGIN + row(names, HEADER_STYLE)
    },
    rows: rows =>
      rows.map(({ cells, values }) =>
        row(arrangeRow(dialect.width, cells.map(toValue), values).slice(0, COLUMNS_MAX), 0),
      ),
    end: '</sheetData></worksheet>',
  }
}

const BEGIN =
  '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>' +
  '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">' +
  '<sheetViews><sheetView workbookViewId="0">' +
  '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>' +
  '</sheetView></sheetViews><sheetData>'

/** A decimal number without leading zeros, which a number cell shows unchanged. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?$/
/** Digits that a number cell keeps ("Excel specifications and limits"). */
const DIGITS_MAX = 15

/** Converts a cell of a list: a number if that loses nothing, such as a leading zero. */
function toValue(cell: string): Value {
  if (!NUMBER.test(cell) || cell === '-0') return cell
  return cell.replace(/\D/g, '').length <= DIGITS_MAX ? Number(cell) : cell
}

function formatCell(reference: string, value: Value, style: number): string {
  if (value === null || value === '') return ''
  if (typeof value === 'boolean') return `<c r="${reference}" t="b"><v>${value ? 1 : 0}</v></c>`
  if (typeof value === 'number') return `<c r="${reference}"><v>${value}</v></c>`
  // Without the text format, a cell such as =1+1 becomes a formula when it is edited.
  const id = style === 0 && isFormula(value) ? TEXT_STYLE : style
  const attribute = id === 0 ? '' : ` s="${id}"`
  return `<c r="${reference}"${attribute} t="inlineStr"><is><t xml:space="preserve">${escapeText(value)}</t></is></c>`
}

/** XML cannot contain control characters; workbooks escape them (ECMA-376 §22.9.2.19). */
function escapeText(value: string): string {
  const text = value.slice(0, CELL_LENGTH_MAX).toWellFormed()
  return SPECIAL.test(text) ? text.replace(SPECIAL_ALL, escapeCharacter) : text
}

const SPECIAL_ALL = /[&<>\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)/g
const SPECIAL = new RegExp(SPECIAL_ALL.source)
const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
const escapeCharacter = (character: string) =>
  ENTITIES[character] ?? `_x${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`

const tooManyColumns = (count: number) =>
  new EvError(
    'bad_input',
    `The results have ${formatNumber(count)} columns, but a worksheet has at most ${formatNumber(COLUMNS_MAX)}. Use CSV.`,
  )
