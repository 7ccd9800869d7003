import type { Entry } from 'yauzl'
import { CELL_LINE_BREAKS_MAX } from '../csv/csv.ts'
import { yieldToEventLoop } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { type Archive, damagedArchive, findOnlyFile, openArchive } from './archive.ts'
import { type ExpansionLimit, limitExpansion } from './expansion-limit.ts'
import {
  type ContentOptions,
  guardText,
  type ListContent,
  notWorkbook,
  textContent,
} from './list-content.ts'
import { readSharedStrings } from './shared-strings.ts'
import { readSheetRows, type SheetRow } from './sheet-rows.ts'
import { findSheet, nameOtherSheets, type Workbook, WorkbookReader } from './workbook.ts'

/** Opens a ZIP archive with one list, or a workbook. Throws EvError `bad_input`. */
export async function openZip(
  path: string,
  options: ContentOptions,
  limit: () => ExpansionLimit,
): Promise<ListContent> {
  return await withArchive(path, async archive => {
    if (archive.findPart('[Content_Types].xml') !== undefined)
      return await openWorkbook(archive, path, options, limit)
    if (archive.files.get('content.xml') && archive.files.has('mimetype')) throw openDocument()
    const file = findOnlyFile(archive)
    if (options.sheet !== undefined) throw notWorkbook(options.sheet)
    return textContent('zip', () =>
      readArchive(path, opened => guardText(readFile(opened, file, limit()))),
    )
  })
}

async function* readFile(archive: Archive, file: Entry, limit: ExpansionLimit) {
  yield* limitExpansion(await archive.open(file), limit)
}

async function openWorkbook(
  archive: Archive,
  path: string,
  options: ContentOptions,
  limit: () => ExpansionLimit,
): Promise<ListContent> {
  const workbook = await new WorkbookReader(archive, limit()).readWorkbook()
  const sheet = findSheet(workbook, options.sheet)
  return {
    format: 'xlsx',
    workbook: { sheet: sheet.name, sheets: workbook.sheets.map(({ name }) => name) },
    known: { encoding: 'utf-8', delimiter: ',', ...nameOtherSheets(workbook, sheet) },
    read: () =>
      readArchive(path, opened => {
        const rows = readSheet(new WorkbookReader(opened, limit()), workbook, sheet.part)
        // Cells may repeat a long text that the file contains once.
        return limitExpansion(toSheetText(rows), limit())
      }),
  }
}

async function* readSheet(reader: WorkbookReader, workbook: Workbook, part: Entry) {
  const { sharedStrings, styles, is1904 } = workbook
  const strings = sharedStrings && (await readSharedStrings(reader.bytes(sharedStrings)))
  const dateStyles = styles === null ? [] : await reader.readDateStyles(styles)
  yield* readSheetRows(reader.bytes(part), { strings, dateStyles, is1904 })
}

async function withArchive<T>(path: string, use: (archive: Archive) => Promise<T>): Promise<T> {
  const archive = await openArchive(path)
  try {
    return await use(archive)
  } catch (error) {
    throw damagedArchive(error)
  } finally {
    archive.close()
  }
}

async function* readArchive(
  path: string,
  read: (archive: Archive) => AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const archive = await openArchive(path)
  try {
    yield* read(archive)
  } catch (error) {
    throw damagedArchive(error)
  } finally {
    archive.close()
  }
}

const openDocument = () =>
  new EvError(
    'bad_input',
    'The list is an OpenDocument spreadsheet (.ods), which ev does not read. Save it as .xlsx or CSV.',
  )

/** Rows that determine the width of a sheet, and the maximum of their cells and text. */
const WIDTH_ROWS = 1_000
const WIDTH_CELLS_MAX = 100_000
const WIDTH_LENGTH_MAX = 1024 * 1024
/** Wider rows are not padded: it would multiply the size of a sheet of short rows. */
const PADDED_WIDTH_MAX = 256
/** Text that is converted at once, excluding its last row: some milliseconds of work. */
const SLICE_LENGTH = 64 * 1024

/**
 * Converts the rows of a sheet to CSV, so that header, address column and rows are found as in any
 * list. As in the CSV of a spreadsheet program, narrower rows are padded to one width.
 */
async function* toSheetText(batches: AsyncIterable<readonly SheetRow[]>) {
  let first: SheetRow[] = []
  let [cells, length] = [0, 0]
  let width: number | null = null
  for await (const rows of batches) {
    if (width !== null) {
      yield* toTexts(rows, width)
      continue
    }
    first.push(...rows)
    for (const row of rows) {
      cells += row.width
      length += row.length
    }
    const isEnough =
      first.length >= WIDTH_ROWS || cells >= WIDTH_CELLS_MAX || length >= WIDTH_LENGTH_MAX
    if (!isEnough) continue
    width = paddedWidth(first)
    yield* toTexts(first, width)
    first = []
  }
  yield* toTexts(first, width ?? paddedWidth(first))
}

const paddedWidth = (rows: readonly SheetRow[]) =>
  rows.reduce((most, { width }) => Math.max(most, Math.min(width, PADDED_WIDTH_MAX)), 0)

async function* toTexts(rows: readonly SheetRow[], width: number): AsyncGenerator<Uint8Array> {
  let slice = ''
  for (const row of rows) {
    slice += toCsv(row, width)
    if (slice.length < SLICE_LENGTH) continue
    yield Buffer.from(slice)
    slice = ''
    await yieldToEventLoop()
  }
  if (slice !== '') yield Buffer.from(slice)
}

/** Quotes each cell, so that none is taken for a byte order mark, a blank line or several rows. */
function toCsv({ cells, width: own }: SheetRow, width: number): string {
  let text = ''
  let last = 0
  for (const [column, cell] of cells) {
    text += `${','.repeat(column - last)}"${limitLineBreaks(cell).replaceAll('"', '""')}"`
    last = column
  }
  return `${text}${','.repeat(Math.max(own, width) - 1 - last)}\n`
}

/** A reader of CSV would end a cell with more line breaks. */
function limitLineBreaks(cell: string): string {
  if (!/[\r\n]/.test(cell)) return cell
  const lines = cell.split(/\r\n|\r|\n/)
  return lines.length > CELL_LINE_BREAKS_MAX ? lines.join(' ') : cell
}
