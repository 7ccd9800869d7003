import { type Clock, HOUR } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'

/** API keys that are each shown once, under an unguessable URL. */
export interface FirstKeys {
  /** Returns the path that shows the key, valid for an hour. */
  offer(key: string): string
  /** Returns whether a token is valid. */
  has(token: string): boolean
  /** Returns and forgets the key; null if the token is not valid. */
  take(token: string): string | null
}

/** 103 bits of entropy. */
const TOKEN_LENGTH = 20
/** The admin opens the link right after starting the service. */
const OFFER_TTL_MS = HOUR

/** Kept in memory only: the database stores only the hash of a key. */
export function firstKeys(clock: Clock, random: Random): FirstKeys {
  let offered: { readonly token: string; readonly key: string; readonly until: number } | null =
    null
  const has = (token: string) =>
    offered !== null && offered.token === token && offered.until > clock.monotonicNow()
  return {
    has,
    offer(key) {
      const token = random.token(TOKEN_LENGTH)
      offered = { token, key, until: clock.monotonicNow() + OFFER_TTL_MS }
      return `/welcome/${token}`
    },
    take(token) {
      const key = has(token) ? (offered?.key ?? null) : null
      if (key !== null) offered = null
      return key
    },
  }
}
