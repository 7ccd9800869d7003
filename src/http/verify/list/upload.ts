import { createHash, type Hash } from 'node:crypto'
import { createWriteStream, mkdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { Busboy, type BusboyFileStream } from '@fastify/busboy'
import type { Random } from '../../../base/random.ts'
import { cleanText } from '../../../base/text.ts'
import { ApiError } from '../../error/api-error.ts'

/** A form with a file, as it was received. */
export type Upload = {
  /** Where the file lies until `discard`. */
  readonly path: string
  readonly fields: ReadonlyMap<string, string>
  /** SHA-256 of file and fields, hexadecimal: by it the same form is known again. */
  readonly digest: string
  discard(): Promise<void>
}

const MIB = 1024 * 1024
/** A million rows of the usual kind have 30 to 60 MiB. */
const FILE_BYTES_MAX = 100 * MIB
/** What stands around the file: boundaries, headers of parts and the other fields. */
const AROUND_BYTES_MAX = 64 * 1024
export const FORM_BYTES_MAX = FILE_BYTES_MAX + AROUND_BYTES_MAX
/** The fields that there are, with room for those that are none of ours. */
const FIELDS_MAX = 20
const FIELD_BYTES_MAX = 2_000
/** Of one part: a browser sends two. */
const PART_HEADERS_MAX = 20
const FILE_FIELD = 'file'

/** Takes forms with a file into a folder of the data directory. */
export function uploads(dataDir: string, random: Random, fileBytesMax = FILE_BYTES_MAX) {
  const folder = folderOf(dataDir)
  return {
    async receive(request: Request): Promise<Upload> {
      const path = join(folder, random.token(FILE_NAME_LENGTH))
      const discard = () => rm(path, { force: true })
      makeFolder(folder)
      const form = new Form(path, request, fileBytesMax)
      try {
        return { path, discard, ...(await form.receive()) }
      } catch (error) {
        await form.close()
        await discard()
        throw error
      }
    },
  }
}

const FILE_NAME_LENGTH = 20

/** Removes what a process that was killed left of uploads; call it before there are any. */
export function clearUploads(dataDir: string): void {
  rmSync(folderOf(dataDir), { recursive: true, force: true })
}

const folderOf = (dataDir: string) => join(dataDir, 'uploads')

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw notStored(error)
  }
}

/** Reads a form to its end, as fields may come behind the file, which goes to the disk while it comes. */
class Form {
  readonly #path: string
  readonly #request: Request
  readonly #fileBytesMax: number
  readonly #parser: InstanceType<typeof Busboy>
  readonly #fields = new Map<string, string>()
  readonly #hash = createHash('sha256')
  #part: BusboyFileStream | null = null
  #stored: Promise<void> | null = null
  /** The first thing that is wrong with it. */
  #fault: ApiError | null = null

  constructor(path: string, request: Request, fileBytesMax: number) {
    this.#path = path
    this.#request = request
    this.#fileBytesMax = fileBytesMax
    this.#parser = openParser(request.headers.get('Content-Type') ?? '', fileBytesMax)
    this.#parser.on('field', (name, value, _, isCut) => this.#field(name, value, isCut))
    this.#parser.on('file', (name, part) => this.#file(name, part))
    this.#parser.on('filesLimit', () => this.#blame('it holds more than one file'))
    this.#parser.on('fieldsLimit', () => this.#blame(`it has more than ${FIELDS_MAX} fields`))
  }

  async receive(): Promise<Pick<Upload, 'fields' | 'digest'>> {
    await this.#read()
    await this.#stored
    if (this.#fault !== null) throw this.#fault
    if (this.#stored === null) throw malformed(`it has no file in a field named "${FILE_FIELD}"`)
    for (const field of [...this.#fields].toSorted()) this.#hash.update(JSON.stringify(field))
    return { fields: this.#fields, digest: this.#hash.digest('hex') }
  }

  /** Lets go of the file, however far it came. */
  async close(): Promise<void> {
    this.#part?.destroy(new Error('the form was given up'))
    await this.#stored?.catch(() => {})
  }

  #blame(why: string) {
    this.#fault ??= malformed(why)
  }

  #field(name: string, value: string, isCut: boolean) {
    if (isCut) this.#blame(`the field "${cleanText(name, 40)}" is too long`)
    this.#fields.set(name, value)
  }

  #file(name: string, part: BusboyFileStream) {
    if (name !== FILE_FIELD) {
      this.#blame(
        `the file is in the field "${cleanText(name, 40)}"; it belongs in "${FILE_FIELD}"`,
      )
      return void part.resume()
    }
    this.#part = part
    part.on('limit', () => this.#parser.destroy(tooLarge(this.#fileBytesMax)))
    this.#stored = store(part, this.#path, this.#hash)
    // A part that nobody takes would hold the form up for ever.
    this.#stored.catch(error => this.#parser.destroy(error))
  }

  async #read(): Promise<void> {
    const { body, signal } = this.#request
    if (body === null) throw malformed('it is empty')
    const bytesMax = this.#fileBytesMax + AROUND_BYTES_MAX
    try {
      const bytes = Readable.fromWeb(body as ReadableStream)
      const limited = limitedTo(bytesMax, tooLarge(this.#fileBytesMax))
      await pipeline(bytes, limited, this.#parser)
    } catch (error) {
      if (error instanceof ApiError) throw error
      if (signal.aborted) throw new ApiError('request_timeout', 'The body did not come whole')
      // Where the file could not be stored, that is why.
      await this.#storeFailure()
      throw brokenOff(error)
    }
  }

  async #storeFailure(): Promise<void> {
    if (this.#part?.destroyed) await this.#stored
  }
}

function openParser(contentType: string, fileBytesMax: number) {
  if (!/^multipart\/form-data\b/i.test(contentType)) {
    throw new ApiError('unsupported_media_type', `Send the file as multipart/form-data${HOW}`)
  }
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      limits: {
        ...{ files: 1, fileSize: fileBytesMax, fields: FIELDS_MAX },
        ...{ fieldSize: FIELD_BYTES_MAX, headerPairs: PART_HEADERS_MAX },
      },
      // A part of that name is the list, even if it was sent as text.
      isPartAFile: (name, _, fileName) => name === FILE_FIELD || fileName !== undefined,
    })
  } catch (error) {
    throw malformed('its Content-Type names no boundary', error)
  }
}

/** What stands before, between and behind the parts counts as well. */
function limitedTo(bytesMax: number, fault: ApiError): Transform {
  let length = 0
  return new Transform({
    transform(bytes: Uint8Array, _, done) {
      length += bytes.byteLength
      if (length > bytesMax) done(fault)
      else done(null, bytes)
    },
  })
}

async function store(part: BusboyFileStream, path: string, hash: Hash): Promise<void> {
  const hashed = new Transform({
    transform(bytes, _, done) {
      hash.update(bytes)
      done(null, bytes)
    },
  })
  try {
    await pipeline(part, hashed, createWriteStream(path, { mode: 0o600 }))
  } catch (error) {
    throw isOfDisk(error) ? notStored(error) : brokenOff(error)
  }
}

/** ENOSPC, EDQUOT, EIO …; what the form itself does wrong has other codes, or none. */
const isOfDisk = (error: unknown) =>
  error instanceof Error && 'code' in error && /^E[A-Z]+$/.test(String(error.code))

const tooLarge = (bytesMax: number) =>
  new ApiError(
    'payload_too_large',
    `The file has more than ${(bytesMax / MIB).toLocaleString('en')} MiB, which is the most a file may have. Divide it.`,
  )

/** A disk that is full is seldom so for long. */
const STORE_RETRY_S = 5

const notStored = (cause: unknown) =>
  new ApiError('service_unavailable', 'The file cannot be stored now: try again', {
    retryAfterS: STORE_RETRY_S,
    cause,
  })

const HOW = ', as curl does with -F file=@list.csv.'

const malformed = (why: string, cause?: unknown) =>
  new ApiError(
    'invalid_request',
    `The form cannot be read: ${why}. Send multipart/form-data${HOW}`,
    {
      cause,
    },
  )

const brokenOff = (cause: unknown) => malformed('it ends too early, or its parts are broken', cause)
