import { isUtf8 } from 'node:buffer'
import { promisify } from 'node:util'
import { gunzip as gunzipCallback } from 'node:zlib'
import type { Context } from 'hono'
import {
  JsonError,
  type JsonLimit,
  type JsonLimits,
  readJsonText,
} from '../../platform/json-reader.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import { requestError } from '../errors/request-errors.ts'
import { getHeader } from '../headers.ts'

export type BodyRule = {
  readonly bytesMax: number
  /** `stream`: the handler reads the body and enforces `bytesMax`. */
  readonly kind: 'json' | 'stream'
  /** Maximum number of values in a JSON body; `VALUES_MAX` if omitted. */
  readonly valuesMax?: number | undefined
  /** Whether the body may be compressed with gzip; `bytesMax` then limits the expanded body too. */
  readonly gzip?: boolean
  /** Whether an object in a JSON body may have a field twice. */
  readonly mayRepeatFields?: boolean
}

/** Refuses a body by its headers, before the request is counted. */
export function checkBodyHeaders(
  c: Context<Env>,
  { bytesMax, kind, gzip = false }: BodyRule,
): void {
  if (isBodyless(c)) return
  const encoding = getHeader(c, 'content-encoding')
  if (encoding !== undefined && !isAccepted(encoding, gzip)) {
    throw requestError('encoding_not_supported', { encoding, gzip })
  }
  const length = getHeader(c, 'content-length')
  if (length !== undefined && Number(length) > bytesMax)
    throw requestError('body_too_large', { bytesMax })
  const type = getHeader(c, 'content-type')
  if (kind === 'json' && hasBody(c) && !isJson(type)) {
    throw requestError('content_type_not_supported', { type, accepted: JSON_ONLY })
  }
}

const isAccepted = (encoding: string, gzip: boolean) =>
  encoding.trim().toLowerCase() === 'identity' || (gzip && isGzip(encoding))

/** Returns true for a Content-Encoding of gzip (RFC 9110 §8.4.1.3). */
export const isGzip = (encoding: string | null) => /^\s*(x-)?gzip\s*$/i.test(encoding ?? '')

/**
 * Reads and parses a JSON body within its limit and keeps its value and its bytes in the context. A
 * missing body counts as `{}`. A short body that has arrived needs no promise. Throws ApiError, or
 * rejects with it.
 */
export function readJson(c: Context<Env>, rule: BodyRule): void | Promise<void> {
  if (isBodyless(c)) return
  const received = hasBody(c) ? takeReceived(c, rule.bytesMax) : EMPTY
  const isPlain = c.get('largeList') === undefined && !isCompressed(c)
  if (received === null || !isPlain) return readLater(c, rule, received)
  const value = parse(received, rule)
  if (value instanceof Promise) return value.then(one => keepJson(c, received, one))
  keepJson(c, received, value)
}

/** Reads a body that has not arrived (`received` null), or that has to wait for its turn. */
async function readLater(
  c: Context<Env>,
  rule: BodyRule,
  received: Uint8Array | null,
): Promise<void> {
  const sent = received ?? (await readBytes(c, rule.bytesMax))
  // Few bytes may expand to many, so a body is expanded and parsed in its turn.
  const largeList = c.get('largeList')
  await largeList?.acquireSlot()
  const bytes = isCompressed(c) ? await expand(sent, rule.bytesMax) : sent
  const value = await parse(bytes, rule)
  largeList?.onParsed(bytes.length)
  keepJson(c, bytes, value)
}

const isCompressed = (c: Context<Env>) => isGzip(getHeader(c, 'content-encoding') ?? null)

function keepJson(c: Context<Env>, bytes: Uint8Array, value: unknown): void {
  c.set('body', bytes)
  c.set('json', value)
}

/** Returns a body that has arrived and that nothing has read; null for any other. */
function takeReceived({ env }: Context<Env>, bytesMax: number): Uint8Array | null {
  const incoming = env?.incoming
  if (incoming?.complete !== true || incoming.destroyed || incoming.readableDidRead) return null
  const bytes = incoming.read?.() ?? EMPTY
  if (bytes.length > bytesMax) throw requestError('body_too_large', { bytesMax })
  return bytes
}

/**
 * Reads a JSON body as `readJson` does, or a form as an object of its text fields. Its bytes in the
 * context are then the JSON of this object: a repeated form may have another boundary.
 */
export async function readJsonOrForm(c: Context<Env>, rule: BodyRule): Promise<void> {
  const type = getHeader(c, 'content-type')
  if (isJson(type)) return readJson(c, rule)
  if (type === undefined || !FORM_TYPE.test(type)) {
    throw requestError('content_type_not_supported', { type, accepted: JSON_OR_FORM })
  }
  const bytes = await readBytes(c, rule.bytesMax)
  if (countParts(bytes, type) > FORM_PARTS_MAX)
    throw requestError('form_fields_exceeded', { max: FORM_PARTS_MAX })
  const fields = textFields(await parseForm(bytes, type))
  c.set('body', Buffer.from(JSON.stringify(fields)))
  c.set('json', fields)
}

const JSON_ONLY = ['application/json']
const JSON_OR_FORM = [...JSON_ONLY, 'application/x-www-form-urlencoded', 'multipart/form-data']

const FORM_TYPE = /^(?:application\/x-www-form-urlencoded|multipart\/form-data) *(?:;|$)/i

/** Parts of a form that is read into memory. Mailgun sends some dozens. */
const FORM_PARTS_MAX = 1_000

/** Counts what may separate the parts of a form, before an object is created for each of them. */
function countParts(bytes: Uint8Array, type: string): number {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const separator = type.startsWith('m') || type.startsWith('M') ? '\r\n--' : '&'
  let count = 1
  for (let at = text.indexOf(separator); at !== -1; at = text.indexOf(separator, at + 1)) count += 1
  return count
}

async function parseForm(bytes: Uint8Array, type: string): Promise<FormData> {
  const response = new Response(new Uint8Array(bytes), { headers: { 'Content-Type': type } })
  try {
    return await response.formData()
  } catch (cause) {
    throw requestError('form_invalid', { cause })
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
function hasBody(c: Context<Env>): boolean {
  const length = getHeader(c, 'content-length')
  if (length !== undefined) return length !== '0'
  if (getHeader(c, 'transfer-encoding') !== undefined) return true
  const { env, req } = c
  return env?.incoming?.httpVersionMajor === undefined && req.raw.body !== null
}

const isJson = (type: string | undefined) => type !== undefined && JSON_TYPE.test(type)

/** JSON is UTF-8 (RFC 8259 §8.1). */
const JSON_TYPE = /^application\/(?:[\w.-]{1,100}\+)?json *(?:; *charset="?utf-?8"? *)?(?:; *)?$/i

async function readBytes(c: Context<Env>, bytesMax: number): Promise<Uint8Array> {
  try {
    // Node's parser delivers no more bytes than were announced.
    const isAnnounced = getHeader(c, 'content-length') !== undefined
    const bytes = isAnnounced
      ? new Uint8Array(await c.req.arrayBuffer())
      : await readChunks(c, bytesMax)
    if (bytes.byteLength <= bytesMax) return bytes
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw requestError('body_incomplete', { cause: error })
  }
  throw requestError('body_too_large', { bytesMax })
}

async function expand(bytes: Uint8Array, bytesMax: number): Promise<Uint8Array> {
  try {
    return await gunzip(bytes, { maxOutputLength: bytesMax })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw requestError('body_too_large', { bytesMax })
    throw requestError('gzip_invalid', { cause })
  }
}

const gunzip = promisify(gunzipCallback)

async function readChunks(c: Context<Env>, bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of c.req.raw.body ?? []) {
    length += chunk.byteLength
    if (length > bytesMax) throw requestError('body_too_large', { bytesMax })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** A byte order mark, which parsers may ignore (RFC 8259 §8.1). */
const BYTE_ORDER_MARK = '\u00ef\u00bb\u00bf'

/** Returns the value of a JSON body, or a promise of it if the body is long. */
function parse(bytes: Uint8Array, { valuesMax, mayRepeatFields = false }: BodyRule): unknown {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!isUtf8(text)) {
    throw requestError('utf8_invalid', { at: firstInvalidByte(text) })
  }
  const start = text.toString('latin1', 0, 3) === BYTE_ORDER_MARK ? 3 : 0
  if (isBlank(text, start)) return {}
  const limits = valuesMax === undefined ? LIMITS : { ...LIMITS, valuesMax }
  const fail = (error: unknown): never => {
    throw error instanceof JsonError ? toBodyError(error, start, limits) : error
  }
  try {
    const json = start === 0 ? text : text.subarray(start)
    const value = readJsonText(json, limits, { mayRepeatFields })
    return value instanceof Promise ? value.catch(fail) : value
  } catch (error) {
    return fail(error)
  }
}

function isBlank(bytes: Buffer, start: number): boolean {
  for (let at = start; at < bytes.length; at += 1) if (!BLANKS.has(bytes[at] ?? 0)) return false
  return true
}

/** Space, tab, line feed and carriage return. */
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])

function toBodyError({ message, at, limit }: JsonError, start: number, limits: JsonLimits) {
  if (limit === null) return requestError('json_invalid', { fault: message, at: start + at })
  return requestError(EXCESSES[limit], { max: limits[limit] })
}

const EXCESSES = {
  depthMax: 'json_depth_exceeded',
  fieldsMax: 'json_fields_exceeded',
  valuesMax: 'json_values_exceeded',
  tokenBytesMax: 'json_token_too_long',
} as const satisfies Readonly<Record<JsonLimit, string>>

/** Finds the first invalid byte: blocks are checked first, because comparing bytes is slow. */
function firstInvalidByte(bytes: Buffer): number {
  let start = 0
  let end = 0
  do {
    start = end
    end = characterStart(bytes, start + BLOCK_BYTES)
  } while (end > start && isUtf8(bytes.subarray(start, end)))
  // A lenient decoder replaces it, so the re-encoded text differs there.
  const block = bytes.subarray(start, start + 2 * BLOCK_BYTES)
  const reencoded = Buffer.from(new TextDecoder('utf-8', { ignoreBOM: true }).decode(block))
  return start + block.findIndex((byte, at) => byte !== reencoded[at])
}

/** Returns the start of the character at an index, or the index itself if none is valid there. */
function characterStart(bytes: Buffer, index: number): number {
  for (let at = Math.min(index, bytes.length); at > index - CHARACTER_BYTES_MAX; at -= 1)
    if (((bytes[at] ?? 0) & 0xc0) !== 0x80) return at
  return index
}

/** Bytes of a character in UTF-8. */
const CHARACTER_BYTES_MAX = 4

const BLOCK_BYTES = 4_096

/**
 * Values in a body: those of the largest request that is not a list are the scopes and addresses of
 * a key.
 */
const VALUES_MAX = 5_000

const LIMITS: JsonLimits = {
  /** The deepest body of the interface has three levels. */
  depthMax: 16,
  /** The metadata of a job has 50, an event of a provider some dozens. */
  fieldsMax: 1_000,
  valuesMax: VALUES_MAX,
  /** A message of Amazon SNS has 256 KB in one string. */
  tokenBytesMax: 1024 * 1024,
}
