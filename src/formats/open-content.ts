import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createGunzip } from 'node:zlib'
import { HEAD_BYTES_MAX } from '../csv/csv.ts'
import { describeBinary } from '../csv/encoding.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { ExpansionLimit, limitExpansion } from './expansion-limit.ts'
import {
  type ContentOptions,
  GZIP,
  guardText,
  type ListContent,
  notText,
  notWorkbook,
  OLE,
  textContent,
  ZIP,
} from './list-content.ts'

/** Detects the format of a list file by its content. Throws EvError `bad_input`. */
export async function openContent(path: string, options: ContentOptions): Promise<ListContent> {
  const { signature, size, binary } = await readStart(path)
  const { expandedBytesMax, expandedBytesFree } = options
  const limit = () => new ExpansionLimit(size, expandedBytesMax, expandedBytesFree)
  if (signature.startsWith(OLE)) throw await oldWorkbook(path)
  if (signature.startsWith(ZIP) || signature.startsWith(EMPTY_ZIP)) {
    // Loaded only if it is used: the packages for ZIP and XML take 15 ms.
    const { openZip } = await import('./open-zip.ts')
    return await openZip(path, options, limit)
  }
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

const EMPTY_ZIP = '504b0506'

type FileStart = {
  readonly signature: string
  readonly size: number
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
      binary: describeBinary(start),
    }
  } finally {
    await file.close()
  }
}

const SIGNATURE_BYTES = 4
/** Enough to tell text from other content. */
const START_BYTES = 4_096

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
