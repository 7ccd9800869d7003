import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { Busboy, type BusboyFileStream } from '@fastify/busboy'
import type { Random } from '../../platform/random.ts'
import { sanitizeText } from '../../platform/text.ts'
import {
  type Incoming,
  incompleteUpload,
  limitBytes,
  makeFolder,
  malformed,
  malformedUpload,
  storeBytes,
  tooLarge,
  UploadFault,
} from './store-upload.ts'

/** A received form with a file. */
type ReceivedForm = {
  readonly fields: ReadonlyMap<string, string>
  /** SHA-256 of file and fields in hexadecimal, which identifies a repeated form. */
  readonly digest: string
  /** File name given by the sender; empty if the file was sent as text. */
  readonly fileName: string
  /** Size of the file in bytes. */
  readonly size: number
}

export type FormRules = {
  /**
   * Names of the parts that hold the file, even if sent as text; only one of them may be non-empty.
   */
  readonly fileFields: readonly [string, ...string[]]
  readonly fileBytesMax: number
  /**
   * Called before the file is read, with the fields that precede it. An error that it throws
   * rejects the form.
   */
  readonly admit?: (fields: ReadonlyMap<string, string>) => void
}

/** Maximum size of the form without the file: boundaries, part headers and the other fields. */
export const AROUND_BYTES_MAX = 128 * 1024
/** Maximum number of fields, including some that are unknown. */
const FIELDS_MAX = 20
/** The metadata of a job has up to 27,000 characters of up to three bytes. */
const FIELD_BYTES_MAX = 96 * 1024
/** Transfer encodings that leave the bytes of a part as they are (RFC 2045 §6). */
const UNENCODED = /^(?:7bit|8bit|binary)$/i
/** Maximum number of headers per part; a browser sends two. */
const PART_HEADERS_MAX = 20

/**
 * Receives a form (multipart/form-data) and streams its file to `path`. Throws UploadFault or an
 * error of `admit`; the caller must then delete the partial file.
 */
export async function receiveForm(
  request: Incoming,
  path: string,
  rules: FormRules,
): Promise<ReceivedForm> {
  const form = new Form(path, request, rules)
  try {
    return await form.receive()
  } catch (error) {
    await form.close()
    throw error
  }
}

type Stored = { readonly fileName: string; readonly size: number }

/** Reads a form to its end, because fields may follow the file, which is streamed to the disk. */
class Form {
  readonly #path: string
  readonly #request: Incoming
  readonly #rules: FormRules
  readonly #parser: InstanceType<typeof Busboy>
  readonly #fields = new Map<string, string>()
  readonly #hash = createHash('sha256')
  #part: BusboyFileStream | null = null
  #stored: Promise<Stored> | null = null
  /** The first error found in the form. */
  #fault: UploadFault | null = null
  /** The error thrown by `admit`, if any. */
  #refusal: { readonly error: unknown } | null = null

  constructor(path: string, request: Incoming, rules: FormRules) {
    this.#path = path
    this.#request = request
    this.#rules = rules
    this.#parser = openParser(request.headers.get('Content-Type') ?? '', rules)
    this.#parser.on('field', (name, value, _, isCut) => this.#field(name, value, isCut))
    this.#parser.on('file', (name, part, fileName, encoding) => {
      this.#checkEncoding(encoding)
      this.#file(name, part, fileName ?? '')
    })
    this.#parser.on('filesLimit', () => this.#failWithSeveral())
    this.#parser.on('fieldsLimit', () => this.#fail(`it has more than ${FIELDS_MAX} fields`))
  }

  async receive(): Promise<ReceivedForm> {
    await this.#read()
    const stored = await this.#stored
    if (this.#fault !== null) throw this.#fault
    const [field] = this.#rules.fileFields
    if (stored === null) throw malformed(`it has no file in a field named "${field}"`)
    for (const pair of [...this.#fields].toSorted()) this.#hash.update(JSON.stringify(pair))
    return { fields: this.#fields, digest: this.#hash.digest('hex'), ...stored }
  }

  /** Stops storing the file, however much of it was received. */
  async close(): Promise<void> {
    this.#part?.destroy(new Error('the form was aborted'))
    await this.#stored?.catch(() => {})
  }

  #fail(reason: string) {
    this.#fault ??= malformed(reason)
  }

  #failWithSeveral() {
    this.#fault ??= new UploadFault('several-files', 'it contains more than one file')
  }

  /** RFC 7578 §4.7 allows none, and the bytes of an encoded file would be read as its addresses. */
  #checkEncoding(encoding: string) {
    if (UNENCODED.test(encoding)) return
    this.#fail(`its file has the Content-Transfer-Encoding ${sanitizeText(encoding, 40)}`)
  }

  #field(name: string, value: string, isCut: boolean) {
    if (isCut) this.#fail(`the field "${sanitizeText(name, 40)}" is too long`)
    if (this.#fields.has(name)) this.#fail(`it has the field "${sanitizeText(name, 40)}" twice`)
    this.#fields.set(name, value)
  }

  #file(name: string, part: BusboyFileStream, fileName: string) {
    const { fileFields, fileBytesMax } = this.#rules
    // A form that ends within a file is rejected as malformed; an unread part would throw its error.
    part.on('error', () => {})
    if (!fileFields.includes(name)) {
      this.#fail(
        `the file is in the field "${sanitizeText(name, 40)}"; it belongs in "${fileFields[0]}"`,
      )
      return void part.resume()
    }
    if (!this.#isAdmitted()) return void part.resume()
    this.#part = part
    part.on('limit', () => this.#parser.destroy(tooLarge(fileBytesMax)))
    this.#stored = this.#store(part, fileName, this.#stored)
    // An unread part would block the form forever.
    this.#stored.catch(error => this.#parser.destroy(error))
  }

  #isAdmitted(): boolean {
    try {
      this.#rules.admit?.(this.#fields)
      return true
    } catch (error) {
      this.#refusal = { error }
      this.#parser.destroy(new Error('the form was rejected'))
      return false
    }
  }

  /** Stores a part, which replaces an earlier one that was empty. */
  async #store(
    part: BusboyFileStream,
    fileName: string,
    before: Promise<Stored> | null,
  ): Promise<Stored> {
    const earlier = await before
    if (earlier === null || earlier.size === 0) {
      let size = 0
      await storeBytes(part, this.#path, bytes => {
        size += bytes.byteLength
        this.#hash.update(bytes)
      })
      return { fileName, size }
    }
    for await (const bytes of part) {
      if (bytes.length > 0) this.#failWithSeveral()
    }
    return earlier
  }

  async #read(): Promise<void> {
    const { body, headers, signal } = this.#request
    if (body === null) throw malformed('it is empty')
    const { fileBytesMax } = this.#rules
    try {
      const bytes = Readable.fromWeb(body as ReadableStream)
      const limited = limitBytes(fileBytesMax + AROUND_BYTES_MAX, tooLarge(fileBytesMax))
      const form = omitEpilogue(headers)
      const isRead = pipeline(bytes, limited, form, this.#parser)
      // After some malformed delimiters the parser finishes before its input, which is unpiped then
      // and would never be read to its end.
      this.#parser.once('finish', () => form.resume())
      await isRead
    } catch (error) {
      if (this.#refusal !== null) throw this.#refusal.error
      if (error instanceof UploadFault) throw error
      if (signal.aborted) throw incompleteUpload()
      // If the file could not be stored, this throws that error.
      if (this.#part?.destroyed) await this.#stored
      throw malformedUpload(error)
    }
  }
}

/**
 * Passes a form through up to its last delimiter. What follows has no meaning (RFC 2046 §5.1.1), and
 * with another delimiter in it the parser would never end. Fails without a last delimiter, because
 * the parser may finish without one after malformed delimiters.
 */
function omitEpilogue(headers: Incoming['headers']): Transform {
  const [, quoted, plain] = BOUNDARY.exec(headers.get('Content-Type') ?? '') ?? []
  const boundary = quoted ?? plain
  const end = Buffer.from(`\r\n--${boundary}--`)
  // The first delimiter needs no line break before it.
  let before = Buffer.from('\r\n')
  let isOver = false
  return new Transform({
    transform(chunk: Buffer, _, done) {
      if (isOver) return done()
      const text = Buffer.concat([before, chunk])
      const found = text.indexOf(end)
      isOver = found !== -1
      const length = isOver ? found + end.length - before.length : chunk.length
      before = Buffer.from(text.subarray(1 - end.length))
      done(null, chunk.subarray(0, length))
    },
    flush(done) {
      const isWhole = isOver || boundary === undefined
      done(isWhole ? null : new Error('The form has no last delimiter.'))
    },
  })
}

/** RFC 2046 §5.1.1: a boundary has at most 70 characters. */
const BOUNDARY = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i

function openParser(contentType: string, { fileFields, fileBytesMax }: FormRules) {
  if (!/^multipart\/form-data\b/i.test(contentType)) {
    throw new UploadFault('no-form', 'it is not multipart/form-data')
  }
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      limits: {
        files: fileFields.length,
        fileSize: fileBytesMax,
        fields: FIELDS_MAX,
        fieldSize: FIELD_BYTES_MAX,
        headerPairs: PART_HEADERS_MAX,
      },
      isPartAFile: (name, _, fileName) =>
        (name !== undefined && fileFields.includes(name)) || fileName !== undefined,
    })
  } catch (error) {
    throw malformed('its Content-Type has no boundary', error)
  }
}

/** A form with a file that is stored on disk while its request is processed. */
export type Upload = ReceivedForm & {
  /** Path of the file, which exists until `discard`. */
  readonly path: string
  discard(): Promise<void>
}

/** Returns a function that receives forms with a file into a folder of the data directory. */
export const uploads =
  (dataDir: string, random: Random) =>
  /** Throws UploadFault or an error of `admit`; nothing is left of the file then. */
  (request: Incoming, rules: FormRules): Promise<Upload> =>
    storeTemporary(dataDir, random, path => receiveForm(request, path, rules))

type Temporary = { readonly path: string; discard(): Promise<void> }

/** Creates a file with `write` in a folder of the data directory; nothing is left of it if it fails. */
export async function storeTemporary<T extends object>(
  dataDir: string,
  random: Random,
  write: (path: string) => Promise<T>,
): Promise<T & Temporary> {
  const folder = uploadFolder(dataDir)
  makeFolder(folder)
  const path = join(folder, random.token(FILE_NAME_LENGTH))
  const discard = () => rm(path, { force: true })
  try {
    return { path, discard, ...(await write(path)) }
  } catch (error) {
    await discard()
    throw error
  }
}

/** Deletes uploads that a killed process left; call it before the first upload. */
export function clearUploads(dataDir: string): void {
  rmSync(uploadFolder(dataDir), { recursive: true, force: true })
}

const FILE_NAME_LENGTH = 20

const uploadFolder = (dataDir: string) => join(dataDir, 'uploads')
