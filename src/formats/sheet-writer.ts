import type { Readable } from 'node:stream'
import { ZipFile } from 'yazl'
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
import { COLUMNS_MAX } from './sheet-rows.ts'

/** Cell styles of the workbook, by their position in `cellXfs`. */
const TEXT_STYLE = 1
const HEADER_STYLE = 2

const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
const MAIN = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main'
const RELATIONS = 'http://schemas.openxmlformats.org/package/2006/relationships'
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const TYPE = 'application/vnd.openxmlformats-officedocument.spreadsheetml'

/** The parts of a workbook with one worksheet (ECMA-376 part 1, §12.2). */
const PARTS: Readonly<Record<string, string>> = {
  '[Content_Types].xml': `${XML}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="${TYPE}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="${TYPE}.worksheet+xml"/><Override PartName="/xl/styles.xml" ContentType="${TYPE}.styles+xml"/></Types>`,
  '_rels/.rels': `${XML}<Relationships xmlns="${RELATIONS}"><Relationship Id="rId1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
  'xl/workbook.xml': `${XML}<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><bookViews><workbookView/></bookViews><sheets><sheet name="Results" sheetId="1" r:id="rId1"/></sheets></workbook>`,
  'xl/_rels/workbook.xml.rels': `${XML}<Relationships xmlns="${RELATIONS}"><Relationship Id="rId1" Type="${OFFICE}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="${OFFICE}/styles" Target="styles.xml"/></Relationships>`,
  // The third style of `cellXfs` is bold; the second has the number format 49, text.
  'xl/styles.xml': `${XML}<styleSheet xmlns="${MAIN}"><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="3"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/><xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/><xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/></cellXfs></styleSheet>`,
}

/** The same results give the same file; ZIP has no earlier time. */
const MTIME = new Date('1980-01-01T00:00:00Z')
/** Three times as fast as the default, for files that are a quarter larger. */
const COMPRESSION_LEVEL = 1

/** Returns the bytes of a workbook, which are produced as they are read. */
export function zipSheet(sheet: Readable): Readable {
  const zip = new ZipFile()
  const output = zip.outputStream as Readable
  const options = { mtime: MTIME, compressionLevel: COMPRESSION_LEVEL }
  for (const [name, text] of Object.entries(PARTS)) zip.addBuffer(Buffer.from(text), name, options)
  zip.addReadStream(sheet, 'xl/worksheets/sheet1.xml', options)
  zip.end()
  zip.on('error', error => output.destroy(error))
  output.on('close', () => sheet.destroy())
  return output
}

/** Formats the rows of a worksheet as text, for `zipSheet`, in the order in which they are written. */
type SheetWriter = {
  /** Returns the text before the first row, with the header row. Throws EvError `bad_input`. */
  header(): string
  rows(rows: readonly OutputRow[]): string[]
  readonly end: string
}

/** Rows of a list that fit a worksheet below its header ("Excel specifications and limits"). */
export const SHEET_ROWS_MAX = 1_048_575
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
