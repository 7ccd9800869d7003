import { systemDeps } from './deps.ts'
import { EvWebhookError } from './error.ts'
import type { WebhookEvent } from './webhook-event.ts'

export type WebhookOptions = {
  /** Refuses a request without the headers that tell its time, which could be an old one sent again. */
  readonly requireTimestamp?: boolean
  /** How far the time of a request may be from ours, to either side. */
  readonly toleranceMs?: number
  /** Epoch ms of now. */
  readonly now?: () => number
  /** Where there is no global one (Node 18): `webcrypto` of node:crypto. */
  readonly crypto?: Pick<typeof globalThis.crypto, 'subtle'>
}

/** The headers of a request, in the forms that servers give them; names in any case. */
export type WebhookHeaders =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * Checks that a request comes from the service, and gives its event. `body` is the raw body, not parsed and
 * written again; of several secrets (while one is replaced) any may hold. Rejects with EvWebhookError.
 */
export async function verifyWebhook(
  body: string | ArrayBuffer | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: WebhookOptions = {},
): Promise<WebhookEvent> {
  const secrets = checkedSecrets(secret)
  const subtle = subtleOf(options)
  const bytes = bytesOf(body)
  const own = headerOf(headers, 'x-ev-signature')
  const standard = standardOf(headers)
  if (own === null && standard === null) {
    throw new EvWebhookError('The request has no signature: neither X-EV-Signature nor webhook-*.')
  }
  if (standard === null && options.requireTimestamp === true) {
    throw new EvWebhookError('The request does not tell its time: it has no webhook-* headers.')
  }
  // Where they are there, the headers of Standard Webhooks decide, which also tell the time: while a secret is being
  // replaced they hold by the old one too, X-EV-Signature by the new one alone.
  if (standard !== null) await checkStandard(subtle, standard, bytes, secrets, options)
  else if (!(await isOwnSigned(subtle, own ?? '', bytes, secrets))) {
    throw new EvWebhookError('X-EV-Signature is not of this body and this secret.')
  }
  return parseEvent(bytes)
}

/** The text of the secret is the key of X-EV-Signature, `whsec_` and all; in hex. */
async function isOwnSigned(
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
 * Standard Webhooks 1.0: the key is what the secret's base64 stands for, and id and time are signed too, so this is
 * another MAC than that of X-EV-Signature.
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
    throw new EvWebhookError('webhook-timestamp is too far from now: an old request sent again?')
  }
  const macs = signature
    .split(' ')
    .filter(one => one.startsWith('v1,'))
    .map(one => fromBase64(one.slice(3)))
  const keys = secrets.map(secret => fromBase64(secret.replace(/^whsec_/, '')))
  const signed = concat(utf8(`${id}.${timestamp}.`), body)
  if (!(await isSigned(subtle, macs.filter(isGiven), signed, keys.filter(isGiven)))) {
    throw new EvWebhookError('webhook-signature is not of this body and this secret.')
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
    // Said below.
  }
  throw new EvWebhookError('The body is signed, but it is no event.')
}

type Bytes = Uint8Array<ArrayBuffer>
type SubtleCrypto = typeof globalThis.crypto.subtle
type Standard = { readonly id: string; readonly timestamp: string; readonly signature: string }

/** As Standard Webhooks advises. */
const TOLERANCE_MS = 5 * 60_000

/** Half of the three headers is as good as a false signature, not as none. */
function standardOf(headers: WebhookHeaders): Standard | null {
  const [id, timestamp, signature] = ['id', 'timestamp', 'signature'].map(name =>
    headerOf(headers, `webhook-${name}`),
  )
  if (id == null && timestamp == null && signature == null) return null
  return { id: id ?? '', timestamp: timestamp ?? '', signature: signature ?? '' }
}

function headerOf(headers: WebhookHeaders, name: string): string | null {
  if (typeof headers.get === 'function') return (headers as Headers).get(name)
  const given = Object.entries(headers as Record<string, string | readonly string[] | undefined>)
  const value = given.find(([key]) => key.toLowerCase() === name)?.[1]
  return value === undefined ? null : String(value)
}

function checkedSecrets(secret: string | readonly string[]): readonly string[] {
  const secrets = Array.isArray(secret) ? secret : [secret]
  // Whoever forgot to set it hands in nothing, whatever its type says; an empty one would believe whoever signs with it.
  if (secrets.length > 0 && secrets.every(one => typeof one === 'string' && one !== '')) {
    return secrets
  }
  throw new TypeError(
    'verifyWebhook takes the secret of the webhook ("whsec_…"), not nothing. Is it set where this runs?',
  )
}

function subtleOf({ crypto = globalThis.crypto }: WebhookOptions): SubtleCrypto {
  if (crypto?.subtle !== undefined) return crypto.subtle
  throw new TypeError(
    'verifyWebhook needs WebCrypto, and there is none: on Node 18 hand in { crypto: webcrypto } of node:crypto; in browsers only pages of HTTPS have it.',
  )
}

function bytesOf(body: string | ArrayBuffer | Uint8Array): Bytes {
  if (typeof body === 'string') return utf8(body)
  if (body instanceof Uint8Array) return Uint8Array.from(body)
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  throw new TypeError('verifyWebhook takes the raw body, as text or bytes, not what was parsed.')
}

const utf8 = (text: string): Bytes => Uint8Array.from(new TextEncoder().encode(text))

/** Null when it is none. */
function fromBase64(text: string): Bytes | null {
  try {
    return Uint8Array.from(atob(text), character => character.charCodeAt(0))
  } catch {
    return null
  }
}

/** An empty key is no key. */
const isGiven = (bytes: Bytes | null): bytes is Bytes => bytes !== null && bytes.length > 0

function concat(a: Bytes, b: Bytes): Bytes {
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}
