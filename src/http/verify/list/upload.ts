import { createHash, type Hash } from 'node:crypto'
import { createWriteStream, mkdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { Busboy, type BusboyFileStream } from '@fastify/busboy'
import type { Random } from '../../../base/random.ts'
import { cleanText } from '../../../base/text.ts'
import { ApiError } from '../../api-error.ts'

/** A form with a file, as it was received. */
export type Upload = {
  /** Where the file lies until `discard`. */
  readonly path: string
  readonly fields: ReadonlyMap<string, string>
  /** SHA-256 of file and fields, hexadecimal: by it the same form is known again. */
  readonly digest: string
  discard(): Promise<void>
}

/** A million rows of the usual kind have 30 to 60 MiB. */
export const FILE_BYTES_MAX = 100 * 1024 * 1024
/** What stands around the file: boundaries, part headers and the other fields. */
export const FORM_BYTES_MAX = FILE_BYTES_MAX + 64 * 1024
/** The fields that there are, with room for those that are none of ours. */
const FIELDS_MAX = 20
const FIELD_BYTES_MAX = 2_000
const FILE_FIELD = 'file'

/** Takes forms with a file into a folder of the data directory; what an earlier process left there goes. */
export function uploads(dataDir: string, random: Random) {
  const folder = join(dataDir, 'uploads')
  rmSync(folder, { recursive: true, force: true })
  return {
    async receive(request: Request): Promise<Upload> {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      const path = join(folder, random.token(FILE_NAME_LENGTH))
      const discard = () => rm(path, { force: true })
      try {
        return { path, discard, ...(await receiveForm(request, path)) }
      } catch (error) {
        await discard()
        throw error
      }
    },
  }
}

const FILE_NAME_LENGTH = 20

/** Reads the form to its end, as fields may come behind the file, which goes to the disk while it comes. */
async function receiveForm(request: Request, path: string) {
  const fields = new Map<string, string>()
  const hash = createHash('sha256')
  const form = openForm(request.headers.get('Content-Type') ?? '')
  let file: Promise<void> | null = null
  let fault: ApiError | null = null
  form.on('field', (name, value, _, isCut) => {
    if (isCut) fault ??= malformed(`the field "${cleanText(name, 40)}" is too long`)
    fields.set(name, value)
  })
  form.on('file', (name, stream) => {
    if (name !== FILE_FIELD) {
      fault ??= malformed(
        `the file is in the field "${cleanText(name, 40)}"; it belongs in "${FILE_FIELD}"`,
      )
      return void stream.resume()
    }
    file = store(stream, path, hash)
    // It is awaited below; until then it may fail without anybody listening.
    file.catch(() => {})
  })
  form.on('filesLimit', () => {
    fault ??= malformed('it holds more than one file')
  })
  await read(request, form)
  await file
  if (fault !== null) throw fault
  if (file === null) throw malformed(`it has no file in a field named "${FILE_FIELD}"`)
  for (const field of [...fields].toSorted()) hash.update(JSON.stringify(field))
  return { fields, digest: hash.digest('hex') }
}

function openForm(contentType: string) {
  try {
    return new Busboy({
      headers: { 'content-type': contentType } as IncomingHttpHeaders & { 'content-type': string },
      limits: {
        ...{ files: 1, fileSize: FILE_BYTES_MAX, fields: FIELDS_MAX },
        ...{ fieldSize: FIELD_BYTES_MAX, parts: FIELDS_MAX + 1 },
      },
      // A part of that name is the list, even if it was sent as text.
      isPartAFile: (name, _, fileName) => name === FILE_FIELD || fileName !== undefined,
    })
  } catch (error) {
    throw malformed('its Content-Type names no boundary', error)
  }
}

async function read(request: Request, form: InstanceType<typeof Busboy>): Promise<void> {
  if (request.body === null) throw malformed('it is empty')
  const body = Readable.fromWeb(request.body as ReadableStream)
  try {
    await pipeline(body, form)
  } catch (error) {
    if (error instanceof ApiError) throw error
    if (request.signal.aborted) throw new ApiError('request_timeout', 'The body did not come whole')
    throw malformed('it ends too early, or its parts are broken', error)
  }
}

async function store(stream: BusboyFileStream, path: string, hash: Hash): Promise<void> {
  let isTooLong = false
  stream.on('limit', () => {
    isTooLong = true
  })
  const hashed = new Transform({
    transform(bytes, _, done) {
      hash.update(bytes)
      done(null, bytes)
    },
  })
  try {
    await pipeline(stream, hashed, createWriteStream(path, { mode: 0o600 }))
  } catch (error) {
    throw new ApiError('service_unavailable', 'The file cannot be stored now: try again', {
      retryAfterS: STORE_RETRY_S,
      cause: error,
    })
  }
  if (isTooLong) {
    throw new ApiError(
      'payload_too_large',
      `The file has more than ${FILE_BYTES_MAX / (1024 * 1024)} MiB, which is the most a file may have. Divide it.`,
    )
  }
}

/** A disk that is full is seldom so for long. */
const STORE_RETRY_S = 5

const malformed = (why: string, cause?: unknown) =>
  new ApiError(
    'invalid_request',
    `The form cannot be read: ${why}. Send multipart/form-data, as curl does with -F file=@list.csv.`,
    { cause },
  )
