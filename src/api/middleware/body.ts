import { promisify } from 'node:util'
import { gunzip as gunzipCallback } from 'node:zlib'
import type { Context } from 'hono'
import { errorMessage } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'

export type BodyRule = {
  readonly bytesMax: number
  /** `stream`: the handler reads the body and enforces `bytesMax`. */
  readonly kind: 'json' | 'stream'
  /** Whether the body may be compressed with gzip; `bytesMax` then limits the expanded body too. */
  readonly gzip?: boolean
}

/** Refuses a body by its headers, before the request is counted. */
export function checkBodyHeaders(
  c: Context<Env>,
  { bytesMax, kind, gzip = false }: BodyRule,
): void {
  if (isBodyless(c)) return
  const { req } = c
  const encoding = req.header('Content-Encoding')
  if (encoding !== undefined && !isAccepted(encoding, gzip)) {
    throw new ApiError(
      'unsupported_media_type',
      `Unsupported Content-Encoding. Send the body uncompressed${gzip ? ', or with gzip' : ''}.`,
    )
  }
  const length = req.header('Content-Length')
  if (length !== undefined && Number(length) > bytesMax) throw tooLarge(bytesMax)
  if (kind === 'json' && hasBody(c) && !isJson(req.header('Content-Type'))) {
    throw new ApiError(
      'unsupported_media_type',
      'Unsupported Content-Type. Send the body as application/json.',
    )
  }
}

const isAccepted = (encoding: string, gzip: boolean) =>
  encoding.trim().toLowerCase() === 'identity' || (gzip && isGzip(encoding))

/** Returns true for a Content-Encoding of gzip (RFC 9110 §8.4.1.3). */
export const isGzip = (encoding: string | null) => /^\s*(x-)?gzip\s*$/i.test(encoding ?? '')

/**
 * Reads and parses a JSON body within its limit for the schemas that follow, and keeps its bytes in
 * the context. A missing body counts as `{}`.
 */
export async function readJson(c: Context<Env>, { bytesMax }: BodyRule): Promise<void> {
  if (isBodyless(c)) return
  const bytes = hasBody(c) ? await readBytes(c, bytesMax) : EMPTY
  await c.get('acquireImportSlot')?.()
  const value = parse(bytes)
  c.set('body', bytes)
  // Later readers would otherwise parse it again.
  c.req.json = async <T>() => value as T
}

/**
 * Reads a JSON body as `readJson` does, or a form as an object of its text fields. Its bytes in the
 * context are then the JSON of this object: a repeated form may have another boundary.
 */
export async function readJsonOrForm(c: Context<Env>, rule: BodyRule): Promise<void> {
  const type = c.req.header('Content-Type')
  if (isJson(type)) return readJson(c, rule)
  if (type === undefined || !FORM_TYPE.test(type)) {
    throw new ApiError(
      'unsupported_media_type',
      'Unsupported Content-Type. Send the body as application/json, application/x-www-form-urlencoded or multipart/form-data.',
    )
  }
  const form = await parseForm(await readBytes(c, rule.bytesMax), type)
  const fields = textFields(form)
  c.set('body', Buffer.from(JSON.stringify(fields)))
  c.req.json = async <T>() => fields as T
  // The schema of the route would otherwise read the body again.
  c.req.bodyCache.formData = form
}

const FORM_TYPE = /^(?:application\/x-www-form-urlencoded|multipart\/form-data) *(?:;|$)/i

async function parseForm(bytes: Uint8Array, type: string): Promise<FormData> {
  const response = new Response(new Uint8Array(bytes), { headers: { 'Content-Type': type } })
  try {
    return await response.formData()
  } catch (cause) {
    throw new ApiError('invalid_request', 'The request body is not a valid form.', { cause })
  }
}

/** Returns the first text of each field. */
function textFields(form: FormData): Record<string, string> {
  const fields: Record<string, string> = {}
  for (const [name, value] of form)
    if (typeof value === 'string' && !Object.hasOwn(fields, name)) fields[name] = value
  return fields
}

const EMPTY = new Uint8Array()

/** Content of a GET or HEAD request has no meaning (RFC 9110 §9.3.1). */
const isBodyless = ({ req }: Context<Env>) => req.method === 'GET' || req.method === 'HEAD'

/** One of two headers announces a body (RFC 9112 §6.3); requests in this process need neither. */
function hasBody({ env, req }: Context<Env>): boolean {
  const length = req.header('Content-Length')
  if (length !== undefined) return length !== '0'
  if (req.header('Transfer-Encoding') !== undefined) return true
  return env?.incoming?.httpVersionMajor === undefined && req.raw.body !== null
}

const isJson = (type: string | undefined) => type !== undefined && JSON_TYPE.test(type)

/** JSON is UTF-8 (RFC 8259 §8.1). */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json *(?:; *charset="?utf-?8"? *)?;? *$/i

async function readBytes(c: Context<Env>, bytesMax: number): Promise<Uint8Array> {
  try {
    // Node's parser delivers no more bytes than were announced.
    const isAnnounced = c.req.header('Content-Length') !== undefined
    const bytes = isAnnounced
      ? new Uint8Array(await c.req.arrayBuffer())
      : await readChunks(c, bytesMax)
    const encoding = c.req.header('Content-Encoding') ?? null
    if (bytes.byteLength <= bytesMax)
      return isGzip(encoding) ? await expand(bytes, bytesMax) : bytes
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw new ApiError('invalid_request', 'The request body is incomplete.', { cause: error })
  }
  throw tooLarge(bytesMax)
}

async function expand(bytes: Uint8Array, bytesMax: number): Promise<Uint8Array> {
  try {
    return await gunzip(bytes, { maxOutputLength: bytesMax })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(bytesMax)
    throw new ApiError('invalid_request', 'The request body is not valid gzip.', { cause })
  }
}

const gunzip = promisify(gunzipCallback)

async function readChunks(c: Context<Env>, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of c.req.raw.body ?? []) {
    length += chunk.byteLength
    if (length > bytesMax) throw tooLarge(bytesMax)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLarge(bytesMax: number): ApiError {
  return new ApiError(
    'payload_too_large',
    `The request body is larger than ${bytesMax} bytes, the limit of this endpoint.`,
  )
}

function parse(bytes: Uint8Array): unknown {
  const text = decode(bytes)
  if (text.trim() === '') return {}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ApiError(
      'invalid_json',
      sanitizeText(`The request body is not valid JSON: ${errorMessage(error)}`),
    )
  }
  if (isDeeper(value, DEPTH_MAX)) {
    const message = `The request body is nested deeper than ${DEPTH_MAX} levels.`
    throw new ApiError('invalid_json', message)
  }
  return value
}

/** Removes a byte order mark. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new ApiError(
      'invalid_json',
      `The request body is not valid UTF-8 at byte ${firstInvalidByte(bytes)}.`,
    )
  }
}

/**
 * Finds the first invalid byte: a lenient decoder replaces it, so the re-encoded text differs
 * there.
 */
function firstInvalidByte(bytes: Uint8Array): number {
  const reencoded = Buffer.from(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes))
  return bytes.findIndex((byte, at) => byte !== reencoded[at])
}

/** The deepest body of the interface has three levels. */
const DEPTH_MAX = 16

/** Proceeds level by level: recursion could overflow the stack. */
function isDeeper(value: unknown, depthMax: number): boolean {
  let level = [value].filter(isContainer)
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === depthMax) return true
    level = level.flatMap(container => Object.values(container).filter(isContainer))
  }
  return false
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null
