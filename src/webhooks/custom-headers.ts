import type { SecretBox } from '../platform/secret-box.ts'
import { webhookError } from './errors.ts'

/** Custom request headers of a webhook by name. */
export type CustomHeaders = Readonly<Record<string, string>>

/** Changes of custom headers by name (RFC 7396); null removes a header. */
export type CustomHeadersPatch = Readonly<Record<string, string | null>>

/** Maximum custom headers of a webhook. */
export const CUSTOM_HEADERS_MAX = 10
/** Maximum length of a header value, in characters: fits a JSON Web Token. */
const HEADER_VALUE_LENGTH_MAX = 2_000
/** Maximum length of a header name, in characters. */
const HEADER_NAME_LENGTH_MAX = 100

/**
 * Applies changes to encrypted headers and returns the result, with encrypted values. Throws
 * `webhook_header_rejected`.
 */
export function patchHeaders(
  secretBox: SecretBox,
  current: CustomHeaders,
  patch: CustomHeadersPatch,
): CustomHeaders {
  const changes = Object.entries(patch)
  const changed = new Set(changes.map(([name]) => name.toLowerCase()))
  const [first] = changes
  if (first !== undefined && changed.size < changes.length) {
    reject(first[0], 'Two names differ only in case.')
  }
  const kept = Object.entries(current).filter(([name]) => !changed.has(name.toLowerCase()))
  const added = changes.flatMap(([name, value]) => {
    if (value === null) return []
    const fault = headerFault(name, value)
    return fault === null ? [[name, secretBox.encrypt(value.trim())] as const] : reject(name, fault)
  })
  const headers = [...kept, ...added]
  if (headers.length > CUSTOM_HEADERS_MAX) {
    reject(added.at(-1)?.[0] ?? '', `A webhook has at most ${CUSTOM_HEADERS_MAX} headers.`)
  }
  return Object.fromEntries(headers)
}

function headerFault(name: string, value: string): string | null {
  if (!TOKEN.test(name) || name.length > HEADER_NAME_LENGTH_MAX) {
    return `A name has 1 to ${HEADER_NAME_LENGTH_MAX} letters, digits and hyphens.`
  }
  if (RESERVED.has(name.toLowerCase()) || RESERVED_PREFIX.test(name)) {
    return 'ev or HTTP sets this header itself.'
  }
  if (value.trim() === '') return 'The value is empty.'
  if (!VISIBLE_ASCII.test(value) || value.length > HEADER_VALUE_LENGTH_MAX) {
    return `A value has up to ${HEADER_VALUE_LENGTH_MAX} printable ASCII characters.`
  }
  return null
}

/** Stricter than RFC 9110 §5.6.2: some servers drop headers with other characters. */
const TOKEN = /^[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?$/
const VISIBLE_ASCII = /^[\x20-\x7e]*$/

/** Hop-by-hop headers (RFC 9110 §7.6.1), headers of the connection, and headers that ev sets. */
const RESERVED: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'host'],
  ...['expect', 'http2-settings', 'content-length', 'content-type', 'content-encoding'],
  ...['user-agent', 'date'],
])
/** `proxy-*` is hop-by-hop; the others carry signatures. */
const RESERVED_PREFIX = /^(?:proxy-|webhook-|x-ev-|sec-)/i

function reject(name: string, fault: string): never {
  throw webhookError('webhook_header_rejected', { name, fault })
}

/** Decrypts headers; null if one was encrypted with another key. */
export function decryptHeaders(secretBox: SecretBox, headers: CustomHeaders): CustomHeaders | null {
  try {
    return mapValues(headers, value => secretBox.decrypt(value))
  } catch {
    return null
  }
}

/** Replaces the values of custom headers in a response, which may repeat the request. */
export const redact = (text: string, headers: CustomHeaders): string =>
  Object.values(headers).reduce((redacted, value) => redacted.replaceAll(value, HIDDEN), text)

/** Applies a function to each value. */
export const mapValues = (headers: CustomHeaders, map: (value: string) => string): CustomHeaders =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, map(value)]))

/** Stands for the value of a custom header in the log. */
const HIDDEN = '[hidden]'
