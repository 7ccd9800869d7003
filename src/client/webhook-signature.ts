import { systemDeps } from './deps.ts'
import { EvWebhookError } from './error.ts'
import type { EventData } from './types.ts'

export type WebhookOptions = {
  /** Rejects a request without a timestamp, which could be a replay. */
  readonly requireTimestamp?: boolean
  /** Maximum difference between the timestamp and now, in either direction. */
  readonly toleranceMs?: number
  /** Returns the current time, epoch ms. */
  readonly now?: () => number
  /** WebCrypto, if there is no global one (Node 18): `webcrypto` of node:crypto. */
  readonly crypto?: Pick<typeof globalThis.crypto, 'subtle'>
}

/** Headers of a request, as servers provide them. Names are case-insensitive. */
export type WebhookHeaders =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Verifies the signature of a webhook request and returns its event. `body` is the raw body, not
 * parsed and reserialized. With several secrets, as during a rotation, any of them may match.
 * Rejects with EvWebhookError.
 */
export async function verifyWebhook(
  body: string | ArrayBuffer | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: WebhookOptions = {},
): Promise<WebhookEvent> {
  const secrets = validateSecrets(secret)
  const subtle = getSubtle(options)
  const bytes = toBytes(body)
  const evSignature = getHeader(headers, 'x-ev-signature')
  const standard = readStandard(headers)
  if (evSignature === null && standard === null) {
    throw new EvWebhookError(
      'The request has no signature: no X-EV-Signature, no webhook-* headers.',
    )
  }
  if (standard === null && options.requireTimestamp === true) {
    throw new EvWebhookError('The request has no timestamp: it has no webhook-* headers.')
  }
  // The headers of Standard Webhooks take precedence: they have a timestamp, and during a rotation
  // both secrets sign them, while only the new one signs X-EV-Signature.
  if (standard !== null) await checkStandard(subtle, standard, bytes, secrets, options)
  else if (!(await isEvSigned(subtle, evSignature ?? '', bytes, secrets))) {
    throw new EvWebhookError('X-EV-Signature does not match this body and secret.')
  }
  return parseEvent(bytes)
}

/** X-EV-Signature is a hex HMAC. Its key is the text of the secret, including `whsec_`. */
async function isEvSigned(
  subtle: SubtleCrypto,
  signature: string,
  body: Bytes,
  secrets: readonly string[],
): Promise<boolean> {
  if (!/^[0-9a-f]{64}$/.test(signature)) return false
  const mac = Uint8Array.from(signature.match(/../g) ?? [], pair => Number.parseInt(pair, 16))
  return isSigned(subtle, [mac], body, secrets.map(utf8))
}

/**
 * Standard Webhooks 1.0: the key is the base64-decoded secret, and the MAC covers id and timestamp,
 * so it differs from X-EV-Signature.
 */
async function checkStandard(
  subtle: SubtleCrypto,
  { id, timestamp, signature }: Standard,
  body: Bytes,
  secrets: readonly string[],
  { toleranceMs = TOLERANCE_MS, now = systemDeps.now }: WebhookOptions,
): Promise<void> {
  const sentAt = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) * 1_000 : Number.NaN
  if (!(Math.abs(now() - sentAt) <= toleranceMs)) {
    throw new EvWebhookError(
      'webhook-timestamp is too far from the current time. The request may be a replay.',
    )
  }
  const macs = signature
    .split(' ')
    .filter(one => one.startsWith('v1,'))
    .map(one => fromBase64(one.slice(3)))
  const keys = secrets.map(secret => fromBase64(secret.replace(/^whsec_/, '')))
  const signed = concat(utf8(`${id}.${timestamp}.`), body)
  if (!(await isSigned(subtle, macs.filter(isPresent), signed, keys.filter(isPresent)))) {
    throw new EvWebhookError('webhook-signature does not match this body and secret.')
  }
}

/** `verify` of WebCrypto compares in constant time. */
async function isSigned(
  subtle: SubtleCrypto,
  macs: readonly Bytes[],
  signed: Bytes,
  secrets: readonly Bytes[],
): Promise<boolean> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  for (const secret of secrets) {
    const key = await subtle.importKey('raw', secret, algorithm, false, ['verify'])
    for (const mac of macs) {
      if (await subtle.verify('HMAC', key, mac, signed)) return true
    }
  }
  return false
}

function parseEvent(bytes: Bytes): WebhookEvent {
  try {
    const event = JSON.parse(new TextDecoder().decode(bytes))
    if (typeof event.event === 'string' && typeof event.event_id === 'string') return event
  } catch {
    // Reported below.
  }
  throw new EvWebhookError('The signature is valid, but the body is not an event.')
}

type Bytes = Uint8Array<ArrayBuffer>
type SubtleCrypto = typeof globalThis.crypto.subtle
type Standard = { readonly id: string; readonly timestamp: string; readonly signature: string }

/** Recommended by Standard Webhooks. */
const TOLERANCE_MS = 5 * 60_000

/** If only some of the three headers are present, the signature is invalid, not missing. */
function readStandard(headers: WebhookHeaders): Standard | null {
  const [id, timestamp, signature] = ['id', 'timestamp', 'signature'].map(name =>
    getHeader(headers, `webhook-${name}`),
  )
  if (id == null && timestamp == null && signature == null) return null
  return { id: id ?? '', timestamp: timestamp ?? '', signature: signature ?? '' }
}

function getHeader(headers: WebhookHeaders, name: string): string | null {
  if (typeof headers.get === 'function') return (headers as Headers).get(name)
  const entries = Object.entries(headers as Record<string, string | readonly string[] | undefined>)
  const value = entries.find(([key]) => key.toLowerCase() === name)?.[1]
  return value === undefined ? null : String(value)
}

function validateSecrets(secret: string | readonly string[]): readonly string[] {
  const secrets = Array.isArray(secret) ? secret : [secret]
  // An unset variable is undefined or empty at run time. With an empty key anyone could sign.
  if (secrets.length > 0 && secrets.every(one => typeof one === 'string' && one !== '')) {
    return secrets
  }
  throw new TypeError(
    'verifyWebhook needs the secret of the webhook ("whsec_…"), but got none. Check that it is set.',
  )
}

function getSubtle({ crypto = globalThis.crypto }: WebhookOptions): SubtleCrypto {
  if (crypto?.subtle !== undefined) return crypto.subtle
  throw new TypeError(
    'verifyWebhook needs WebCrypto. On Node 18 pass { crypto: webcrypto } from node:crypto. In browsers it needs HTTPS.',
  )
}

function toBytes(body: string | ArrayBuffer | Uint8Array): Bytes {
  if (typeof body === 'string') return utf8(body)
  if (body instanceof Uint8Array) return Uint8Array.from(body)
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  throw new TypeError('verifyWebhook needs the raw body as text or bytes, not a parsed object.')
}

const utf8 = (text: string): Bytes => Uint8Array.from(new TextEncoder().encode(text))

/** Decodes base64; null if it is invalid. */
function fromBase64(text: string): Bytes | null {
  try {
    return Uint8Array.from(atob(text), character => character.charCodeAt(0))
  } catch {
    return null
  }
}

/** Rejects empty keys. */
const isPresent = (bytes: Bytes | null): bytes is Bytes => bytes !== null && bytes.length > 0

function concat(a: Bytes, b: Bytes): Bytes {
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}

/** An event as delivered to a webhook; `event` determines the type of `data`. */
export type WebhookEvent = {
  [Kind in keyof EventData]: {
    readonly event: Kind
    /** The same for every attempt; use it to ignore duplicates. */
    readonly event_id: string
    readonly timestamp: string
    /** Present and true for simulated events. */
    readonly sandbox?: true
    readonly data: EventData[Kind]
  }
}[keyof EventData]
