import type { Readable } from 'node:stream'
import { type Entry, openPromise, type ZipFile } from 'yauzl'
import { EvError, errorMessage, isFileError } from '../platform/error.ts'
import { formatMebibytes } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'

/** An open ZIP archive. Its central directory is in memory, its files are read from the disk. */
export type Archive = {
  /** Files by name, without folders. The last of two files with the same name counts. */
  readonly files: ReadonlyMap<string, Entry>
  /**
   * Returns the part of a workbook with this name, in any case and with or without percent-encoding
   * (ECMA-376 part 2, §6.2.2.3 and §7.3.4).
   */
  findPart(name: string): Entry | undefined
  /** Opens a file; its size is checked while it is read. */
  open(entry: Entry): Promise<Readable>
  close(): void
}

/** A workbook has some dozens of files; these bound the memory of the directory. */
const FILES_MAX = 10_000
const DIRECTORY_BYTES_MAX = 4 * 1024 * 1024

/** Opens a ZIP archive. Throws EvError `bad_input` if it is damaged. */
export async function openArchive(path: string): Promise<Archive> {
  let zip: ZipFile | undefined
  try {
    zip = await openPromise(path, { autoClose: false })
    return await readDirectory(zip)
  } catch (error) {
    zip?.close()
    throw damagedArchive(error)
  }
}

async function readDirectory(zip: ZipFile): Promise<Archive> {
  if (zip.entryCount > FILES_MAX) throw new Error(`it has more than ${FILES_MAX} files`)
  const files = new Map<string, Entry>()
  const parts = new Map<string, Entry>()
  let bytes = 0
  for await (const entry of zip.eachEntry()) {
    bytes += entry.fileNameLength + entry.extraFieldLength + entry.fileCommentLength
    if (bytes > DIRECTORY_BYTES_MAX) {
      throw new Error(`its directory is larger than ${formatMebibytes(DIRECTORY_BYTES_MAX)}`)
    }
    if (entry.fileName.endsWith('/')) continue
    files.set(entry.fileName, entry)
    parts.set(partKey(entry.fileName), entry)
  }
  return {
    files,
    findPart: name => parts.get(partKey(name)),
    open: async entry => {
      if (entry.isEncrypted()) throw encrypted()
      try {
        return await zip.openReadStreamPromise(entry)
      } catch (error) {
        throw damagedArchive(error)
      }
    },
    close: () => zip.close(),
  }
}

function partKey(name: string): string {
  try {
    return decodeURI(name).toLowerCase()
  } catch {
    // A percent sign that encodes nothing.
    return name.toLowerCase()
  }
}

/** Converts an error of a damaged archive; other errors stay as they are. */
export function damagedArchive(cause: unknown): unknown {
  if (cause instanceof EvError || isFileError(cause)) return cause
  return new EvError(
    'bad_input',
    `The ZIP archive or workbook is damaged: ${reasonOf(cause)}. Create it again, or save the list as CSV.`,
    { cause },
  )
}

/** Messages of libraries have one sentence or more, with or without a final dot. */
const reasonOf = (cause: unknown) => sanitizeText(errorMessage(cause)).replace(/\.$/, '')

const encrypted = () =>
  new EvError(
    'bad_input',
    'The ZIP archive is encrypted. Extract the list with its password, and use the extracted file.',
  )

/** Files that operating systems add to archives. */
const METADATA = /(^|\/)(__MACOSX\/|\.|Thumbs\.db$|desktop\.ini$)/i

/** Number of file names in a message. */
const NAMES_SHOWN_MAX = 10

/** Returns the only file of an archive. Throws EvError that lists the files if there are more. */
export function findOnlyFile({ files }: Archive): Entry {
  const lists = [...files.values()].filter(({ fileName }) => !METADATA.test(fileName))
  const [only] = lists
  if (only !== undefined && lists.length === 1) return only
  if (only === undefined) {
    throw new EvError('bad_input', 'The ZIP archive is empty. It must contain exactly one list.')
  }
  const names = lists.slice(0, NAMES_SHOWN_MAX).map(({ fileName }) => sanitizeText(fileName, 80))
  if (lists.length > names.length) names.push('…')
  throw new EvError(
    'bad_input',
    `The ZIP archive contains ${lists.length} files: ${names.join(', ')}. It must contain exactly one list. Extract the list, and use the extracted file.`,
  )
}
