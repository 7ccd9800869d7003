import { type Clock, HOUR } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'

/** Keys that are offered once each, by an address that cannot be guessed. */
export interface FirstKeys {
  /** Gives the path under which the key can be had, for an hour. */
  offer(key: string): string
  /** Whether there is a key for that token. */
  has(token: string): boolean
  /** The key, and from then on it is forgotten; null: there is none. */
  take(token: string): string | null
}

/** 103 bits of chance. */
const TOKEN_LENGTH = 20
/** Who starts a service looks at it at once. */
const OFFERED_MS = HOUR

/** Only in memory: a key is stored nowhere but as its hash. */
export function firstKeys(clock: Clock, random: Random): FirstKeys {
  let offered: { readonly token: string; readonly key: string; readonly until: number } | null =
    null
  const has = (token: string) =>
    offered !== null && offered.token === token && offered.until > clock.now()
  return {
    has,
    offer(key) {
      const token = random.token(TOKEN_LENGTH)
      offered = { token, key, until: clock.now() + OFFERED_MS }
      return `/welcome/${token}`
    },
    take(token) {
      const key = has(token) ? (offered?.key ?? null) : null
      if (key !== null) offered = null
      return key
    },
  }
}
