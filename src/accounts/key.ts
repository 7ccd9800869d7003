import { hash, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { DAY } from '../platform/clock.ts'
import type { Random } from '../platform/random.ts'

/** A week is enough to deploy a new secret everywhere. */
export const KEY_GRACE_MAX_MS = 7 * DAY
export const KEY_GRACE_MS = DAY

/** A new API key. `text` is shown once; the other fields are stored. */
export type Secret = {
  readonly text: string
  readonly hash: string
  /** Its first characters, by which users tell keys apart. */
  readonly prefix: string
  /** Its last characters. */
  readonly hint: string
}

/**
 * Creates a key: `ev_live_`, `ev_test_` or `ev_pub_`, 32 random characters (190 bits of entropy)
 * and a checksum of 6.
 */
export function newSecret(random: Random, kind: Kind): Secret {
  const entropy = Array.from({ length: ENTROPY_LENGTH }, () => BASE62[random.below(BASE62.length)])
  const body = `ev_${kind}_${entropy.join('')}`
  const text = `${body}${checksum(body)}`
  return {
    text,
    hash: hashSecret(text),
    prefix: text.slice(0, `ev_${kind}_`.length + PREFIX_RANDOM),
    hint: text.slice(-HINT_LENGTH),
  }
}

/** `test`: always in the sandbox. `pub`: a publishable key, which web pages contain. */
type Kind = 'live' | 'test' | 'pub'

/** Whether the first characters of a secret are those of a test key. */
export const isTestPrefix = (prefix: string): boolean => prefix.startsWith('ev_test_')

/**
 * Whether a text has the form and the checksum of a key. Rejects a mistyped or truncated key
 * without a query.
 */
export function isWellFormed(text: string): boolean {
  if (!WELL_FORMED.test(text)) return false
  const body = text.slice(0, -CHECKSUM_LENGTH)
  return text.slice(-CHECKSUM_LENGTH) === checksum(body)
}

/**
 * SHA-256 of a key, hexadecimal; only this is stored. A key has enough entropy that a slow password
 * hash is not needed.
 */
export const hashSecret = (text: string): string => hash('sha256', text)

/** Compares two hashes in constant time. */
export function hashEquals(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const ENTROPY_LENGTH = 32
/** 62⁶ is more than the 2³² values of a CRC. */
const CHECKSUM_LENGTH = 6
const PREFIX_RANDOM = 4
const HINT_LENGTH = 4
const WELL_FORMED = /^ev_(?:live|test|pub)_[0-9A-Za-z]{38}$/

function checksum(body: string): string {
  let rest = crc32(body)
  let digits = ''
  for (let n = 0; n < CHECKSUM_LENGTH; n++) {
    digits = `${BASE62[rest % BASE62.length]}${digits}`
    rest = Math.floor(rest / BASE62.length)
  }
  return digits
}
