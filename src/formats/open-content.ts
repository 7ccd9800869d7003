import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createGunzip } from 'node:zlib'
import type { Entry } from 'yauzl'
import { CELL_LINE_BREAKS_MAX, type DetectOptions, HEAD_BYTES_MAX } from '../csv/csv.ts'
import { describeBinary } from '../csv/encoding.ts'
import { yieldToEventLoop } from '../platform/clock.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import {
  type Archive,
  damagedArchive,
  ExpansionLimit,
  findOnlyFile,
  limitExpansion,
  openArchive,
} from './archive.ts'
import { readSharedStrings } from './shared-strings.ts'
import { readSheetRows, type SheetRow } from './sheet-rows.ts'
import { findSheet, type Workbook, WorkbookReader } from './workbook.ts'

/** The content of a list file as text, whatever the format of the file. */
export type ListContent = {
  readonly format: 'text' | 'gzip' | 'zip' | 'xlsx'
  /** The sheet that is read and the names of all sheets; null if the file is not a workbook. */
  readonly workbook: { readonly sheet: string; readonly sheets: readonly string[] } | null
  /** Properties that the format determines, so that they are not detected. */
  readonly known: Pick<DetectOptions, 'encoding' | 'delimiter'>
  /** Reads the text from its start. Throws EvError `bad_input` for a damaged file. */
  read(): AsyncIterable<Uint8Array>
}

type ContentOptions = {
  /** Name of the sheet; the first visible one if left out. */
  readonly sheet?: string | undefined
  /** Maximum size of the text, and of the parts of a workbook, when they are expanded. */
  readonly expandedBytesMax: number
  /** Size up to which the ratio to the size of the file is not checked. Default: 16 MiB. */
  readonly expandedBytesFree?: number | undefined
}

/** Detects the format of a list file by its content. Throws EvError `bad_input`. */
export async function openContent(path: string, options: ContentOptions): Promise<ListContent> {
  const { signature, size, isHtml, binary } = await readStart(path)
  const { expandedBytesMax, expandedBytesFree } = options
  const limit = () => new ExpansionLimit(size, expandedBytesMax, expandedBytesFree)
  if (signature.startsWith(OLE)) throw await oldWorkbook(path)
  if (isHtml) throw webPage()
  if (signature.startsWith(ZIP) || signature.startsWith(EMPTY_ZIP))
    return await openZip(path, options, limit)
  const isGzip = signature.startsWith(GZIP)
  if (!isGzip && binary !== null) throw notText(binary)
  if (options.sheet !== undefined) throw notWorkbook(options.sheet)
  return isGzip
    ? textContent('gzip', () => guardText(readGzip(path, limit())))
    : textContent('text', () => createReadStream(path))
}

/** The first bytes of a text, which suffice to detect its dialect; `complete` if they are all. */
export async function readContentHead(
  content: Pick<ListContent, 'read'>,
): Promise<{ head: Uint8Array; complete: boolean }> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of content.read()) {
    chunks.push(chunk)
    length += chunk.byteLength
    if (length > HEAD_BYTES_MAX) break
  }
  return {
    head: Buffer.concat(chunks).subarray(0, HEAD_BYTES_MAX),
    complete: length <= HEAD_BYTES_MAX,
  }
}

const GZIP = '1f8b'
const ZIP = '504b0304'
const EMPTY_ZIP = '504b0506'
/** Compound File Binary: .xls, and encrypted workbooks. */
const OLE = 'd0cf11e0'

type FileStart = {
  readonly signature: string
  readonly size: number
  readonly isHtml: boolean
  /** The format of a file that is not text; null for text. */
  readonly binary: string | null
}

async function readStart(path: string): Promise<FileStart> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(START_BYTES), 0, START_BYTES, 0)
    const { size } = await file.stat()
    const start = buffer.subarray(0, bytesRead)
    return {
      signature: start.subarray(0, SIGNATURE_BYTES).toString('hex'),
      size,
      isHtml: HTML.test(start.subarray(0, HTML_BYTES).toString('latin1')),
      binary: describeBinary(start),
    }
  } finally {
    await file.close()
  }
}

const SIGNATURE_BYTES = 4
/** Enough to tell text from other content. */
const START_BYTES = 4_096
/** Enough for the blank lines at the start of a page. */
const HTML_BYTES = 256
/** After a byte order mark. Some services export tables as HTML named .xls. */
const HTML = /^(\xef\xbb\xbf)?\s*<(!doctype\s+html|html)\b/i

const textContent = (format: ListContent['format'], read: ListContent['read']): ListContent => ({
  format,
  workbook: null,
  known: {},
  read,
})

async function* readGzip(path: string, limit: ExpansionLimit): AsyncGenerator<Uint8Array> {
  const file = createReadStream(path)
  const gunzip = createGunzip()
  file.on('error', error => gunzip.destroy(error))
  try {
    yield* limitExpansion(file.pipe(gunzip), limit)
  } catch (error) {
    throw isZlibError(error) ? damagedGzip(error) : error
  } finally {
    file.destroy()
  }
}

const isZlibError = (error: unknown) =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('Z_')

const damagedGzip = (cause: unknown) =>
  new EvError(
    'bad_input',
    `The gzip file is damaged or incomplete: ${errorMessage(cause)}. Create it again.`,
    { cause },
  )

async function openZip(
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
    known: { encoding: 'utf-8', delimiter: ',' },
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

/** Rejects content of a compressed file that is not text. */
async function* guardText(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isFirst = true
  for await (const chunk of bytes) {
    const signature = Buffer.from(chunk.subarray(0, 4)).toString('hex')
    if (isFirst && [GZIP, ZIP, OLE].some(start => signature.startsWith(start))) {
      throw new EvError(
        'bad_input',
        'The compressed file contains a workbook or another compressed file. Extract that file and use it.',
      )
    }
    const format = isFirst ? describeBinary(chunk) : null
    if (format !== null) throw notText(format)
    isFirst = false
    yield chunk
  }
}

const notWorkbook = (sheet: string) =>
  new EvError(
    'bad_input',
    `The list is not a workbook (.xlsx), so it has no sheet "${sanitizeText(sheet, 40)}". Omit the sheet.`,
  )

const notText = (format: string) =>
  new EvError(
    'bad_input',
    `The list is ${format}, not a text file. A list is CSV, TSV, one address per line or an Excel workbook (.xlsx), also compressed with gzip or ZIP. Save it in one of these formats.`,
  )

const webPage = () =>
  new EvError(
    'bad_input',
    'The list is a web page (HTML), not CSV or a workbook. Use the URL or the export that returns the file itself, as CSV or .xlsx.',
  )

const openDocument = () =>
  new EvError(
    'bad_input',
    'The list is an OpenDocument spreadsheet (.ods), which ev does not read. Save it as .xlsx or CSV.',
  )

/** An encrypted workbook is a compound file with a stream of this name ([MS-OFFCRYPTO] §2.3.4.4). */
const ENCRYPTED = Buffer.from('EncryptedPackage', 'utf16le')

async function oldWorkbook(path: string): Promise<EvError> {
  let rest = Buffer.alloc(0)
  for await (const chunk of createReadStream(path)) {
    const bytes = Buffer.concat([rest, chunk as Buffer])
    if (bytes.includes(ENCRYPTED)) {
      return new EvError(
        'bad_input',
        'The workbook is encrypted. Remove its password in a spreadsheet program, or save the sheet as CSV.',
      )
    }
    rest = bytes.subarray(-ENCRYPTED.length)
  }
  return new EvError(
    'bad_input',
    'The list is an old Excel workbook (.xls), which ev does not read. Save it as .xlsx or CSV.',
  )
}

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
