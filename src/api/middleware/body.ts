import type { Context } from 'hono'
import { errorMessage } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'

export type BodyRule = {
  readonly bytesMax: number
  /** `stream`: a handler reads it by itself, and keeps to `bytesMax` as well. */
  readonly kind: 'json' | 'stream'
}

/** Refuses by its headers a body that would not be read: before anybody is charged for it. */
export function checkBodyHeaders(c: Context<Env>, { bytesMax, kind }: BodyRule): void {
  if (isBodyless(c)) return
  const { req } = c
  const encoding = req.header('Content-Encoding')
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    throw new ApiError('unsupported_media_type', 'Send the body as it is, without Content-Encoding')
  }
  const length = req.header('Content-Length')
  if (length !== undefined && Number(length) > bytesMax) throw tooLarge(bytesMax)
  if (kind === 'json' && hasBody(c) && !isJson(req.header('Content-Type'))) {
    throw new ApiError('unsupported_media_type', 'Send the body as Content-Type: application/json')
  }
}

/** Reads a body of JSON, within its limit, for the schemas that come after; its bytes stay at hand. None is as `{}`. */
export async function readJson(c: Context<Env>, { bytesMax }: BodyRule): Promise<void> {
  if (isBodyless(c)) return
  const bytes = hasBody(c) ? await bytesOf(c, bytesMax) : NOTHING
  await c.get('importTurn')?.()
  const value = parse(bytes)
  c.set('body', bytes)
  // What reads it next would else parse it once more.
  c.req.json = async <T>() => value as T
}

const NOTHING = new Uint8Array()

/** What such a request has for a body means nothing (RFC 9110 §9.3.1). */
const isBodyless = ({ req }: Context<Env>) => req.method === 'GET' || req.method === 'HEAD'

/** One of two headers announces a body (RFC 9112 §6.3); in this process none need do it. */
function hasBody({ env, req }: Context<Env>): boolean {
  const length = req.header('Content-Length')
  if (length !== undefined) return length !== '0'
  if (req.header('Transfer-Encoding') !== undefined) return true
  return env?.incoming?.httpVersionMajor === undefined && req.raw.body !== null
}

const isJson = (type: string | undefined) => type !== undefined && JSON_TYPE.test(type)

/** JSON is UTF-8 (RFC 8259 §8.1). */
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json *(?:; *charset="?utf-?8"? *)?;? *$/i

async function bytesOf(c: Context<Env>, bytesMax: number): Promise<Uint8Array> {
  try {
    // Node's parser gives no more bytes than were announced.
    const isAnnounced = c.req.header('Content-Length') !== undefined
    const bytes = isAnnounced
      ? new Uint8Array(await c.req.arrayBuffer())
      : await gather(c, bytesMax)
    if (bytes.byteLength <= bytesMax) return bytes
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw new ApiError('invalid_request', 'The body was cut off', { cause: error })
  }
  throw tooLarge(bytesMax)
}

async function gather(c: Context<Env>, bytesMax: number): Promise<Uint8Array> {
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
    `The body is larger than the ${bytesMax} bytes that this path takes`,
  )
}

function parse(bytes: Uint8Array): unknown {
  const text = decode(bytes)
  if (text.trim() === '') return {}
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ApiError('invalid_json', sanitizeText(`The body is no JSON: ${errorMessage(error)}`))
  }
  if (isDeeper(value, DEPTH_MAX)) {
    const sentence = `The body is nested deeper than ${DEPTH_MAX} levels`
    throw new ApiError('invalid_json', sentence)
  }
  return value
}

/** Takes a byte order mark away. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new ApiError('invalid_json', `The body is not UTF-8, from byte ${badByte(bytes)} on`)
  }
}

/** What is bad comes out of a decoder that overlooks it as something else. */
function badByte(bytes: Uint8Array): number {
  const again = Buffer.from(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes))
  return bytes.findIndex((byte, at) => byte !== again[at])
}

/** The deepest body of the interface has three levels. */
const DEPTH_MAX = 16

/** Level by level: a recursion would end at the stack's end. */
function isDeeper(value: unknown, depthMax: number): boolean {
  let level = [value].filter(isNest)
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === depthMax) return true
    level = level.flatMap(nest => Object.values(nest).filter(isNest))
  }
  return false
}

const isNest = (value: unknown): value is object => typeof value === 'object' && value !== null
