import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { SECOND } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'

// Time-based one-time passwords (RFC 6238) with the parameters that all authenticator apps support:
// SHA-1, six digits, 30 seconds.

const STEP_MS = 30 * SECOND
const DIGITS = 6

/** Steps before and after the current one, for clocks that differ (RFC 6238 §5.2). */
const STEPS_TOLERATED = 1

/** The alphabet of Base32 (RFC 4648 §6). */
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** 160 bits, the length of SHA-1 (RFC 4226 §4). */
const SECRET_LENGTH = 32

/** Returns a new secret in Base32. */
export const newTotpSecret = (random: Random): string => randomBase32(random, SECRET_LENGTH)

/** Returns up to 32 random characters of Base32, with five bits of entropy each. */
export function randomBase32(random: Random, length: number): string {
  const bytes = createHash('sha256').update(random.token(TOKEN_LENGTH)).digest()
  return Array.from(bytes.subarray(0, length), byte => BASE32[byte % BASE32.length]).join('')
}

/** 206 bits of entropy, more than any result has. */
const TOKEN_LENGTH = 40

/**
 * Returns the time step that a code belongs to, null if it is wrong. The caller refuses a step that
 * is not later than the last one (RFC 6238 §5.2).
 */
export function findTotpStep(secret: string, code: string, now: number): number | null {
  const digits = Buffer.from(code.replaceAll(/\s/g, ''))
  const current = Math.floor(now / STEP_MS)
  let found: number | null = null
  for (let step = current - STEPS_TOLERATED; step <= current + STEPS_TOLERATED; step++) {
    const expected = Buffer.from(computeTotp(secret, step))
    if (digits.length === expected.length && timingSafeEqual(digits, expected)) found = step
  }
  return found
}

/** Returns the code of a time step (RFC 4226 §5.3). */
export function computeTotp(secret: string, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const digest = createHmac('sha1', decodeBase32(secret)).update(counter).digest()
  const offset = (digest.at(-1) as number) & 0xf
  const number = digest.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** DIGITS).padStart(DIGITS, '0')
}

function decodeBase32(text: string): Buffer {
  const bytes: number[] = []
  let [bits, value] = [0, 0]
  for (const letter of text) {
    value = ((value << 5) | BASE32.indexOf(letter)) & 0xfff
    bits += 5
    if (bits >= 8) {
      bits -= 8
      bytes.push((value >> bits) & 0xff)
    }
  }
  return Buffer.from(bytes)
}

/** Returns the URI that an authenticator app reads from a QR code. */
export function totpUri(secret: string, { issuer, email }: { issuer: string; email: string }) {
  const query = new URLSearchParams({ secret, issuer })
  return `otpauth://totp/${encodeURIComponent(issuer)}:${encodeURIComponent(email)}?${query}`
}
