import { type Clock, DAY, HOUR, MINUTE } from '../platform/clock.ts'
import { TtlMap } from '../platform/ttl-map.ts'
import { type Address, addressKey } from './address/address.ts'
import type { ProbeResult } from './probe/probe-outcome.ts'

/** The cached outcome of a probe. */
export type CachedAnswer = {
  readonly probed: Omit<ProbeResult, 'dialogue' | 'egress'> & Partial<Pick<ProbeResult, 'egress'>>
  /** Wall-clock time of the answer, epoch ms. */
  readonly at: number
  /** The network that the answer comes from; left out for the public one. */
  readonly network?: string
}

/**
 * Storage of definite answers by cache key: in this process by default, in the database for lists.
 */
export interface ResultCache {
  get(keys: readonly string[]): Promise<ReadonlyMap<string, CachedAnswer>>
  set(entries: ReadonlyMap<string, CachedAnswer>): Promise<void>
}

/**
 * Returns the key of the cached answer and of the verification in flight of an address. Without a
 * scope it is the key of the address; otherwise the scope, which has no space, precedes it.
 */
export const cacheKey = (scope: string | null, address: Address): string =>
  scope === null ? addressKey(address) : `${scope} ${addressKey(address)}`

/** Returns the address key of a cache key. Only a quoted local part contains a space itself. */
export const getAddressKey = (key: string): string =>
  key.startsWith('"') ? key : key.slice(key.indexOf(' ') + 1)

/** How long an answer is fresh, and how long it is kept as a fallback for failed probes. */
type Ttl = { readonly freshMs: number; readonly keepMs: number }

const ACCEPTED: Ttl = { freshMs: DAY, keepMs: 7 * DAY }
/** The catch-all probe had no result, perhaps temporarily, so the address is probed again soon. */
const UNDECIDED: Ttl = { freshMs: 10 * MINUTE, keepMs: 7 * DAY }
const REJECTED: Ttl = { freshMs: 6 * HOUR, keepMs: 6 * HOUR }

/**
 * Returns the TTL of an outcome; null if it must not be cached. Temporary failures (4xx), missing
 * or invalid replies and blocks of ev say nothing about the address.
 */
export function ttlFor(probed: Pick<ProbeResult, 'answer' | 'catchAll'>): Ttl | null {
  if (probed.answer.kind === 'accepted') return isUndecided(probed) ? UNDECIDED : ACCEPTED
  return probed.answer.kind === 'rejected' ? REJECTED : null
}

/** Whether the recipient was accepted at a domain that may accept any. */
export const isUndecided = ({ answer, catchAll }: Pick<ProbeResult, 'answer' | 'catchAll'>) =>
  answer.kind === 'accepted' && catchAll === null

export function isFresh({ probed, at }: CachedAnswer, now: number): boolean {
  const ttl = ttlFor(probed)
  // An entry from the future means that the clock was set back; it counts as stale.
  return ttl !== null && now >= at && now - at < ttl.freshMs
}

/** Whether an answer can still be used while it is refreshed, or after a failed refresh. */
export function isCached({ probed, at }: CachedAnswer, now: number): boolean {
  const ttl = ttlFor(probed)
  return ttl !== null && now - at < ttl.keepMs
}

/** Returns the cache entry of a probe, without the lines of its session; null if not cacheable. */
export function toCacheEntry(
  { dialogue: _, ...probed }: ProbeResult,
  now: number,
): CachedAnswer | null {
  return ttlFor(probed) === null ? null : { probed, at: now }
}

export const noCache: ResultCache = {
  get: async () => new Map(),
  set: async () => {},
}

/** An entry takes about 1 KB. */
const ENTRIES_MAX = 20_000

/** Creates a bounded cache in this process. */
export function processCache(clock: Clock): ResultCache {
  const known = new TtlMap<CachedAnswer>({ sizeMax: ENTRIES_MAX, clock })
  return {
    async get(keys) {
      const found = new Map<string, CachedAnswer>()
      for (const key of keys) {
        const cached = known.get(key)
        if (cached !== undefined) found.set(key, cached)
      }
      return found
    },
    async set(entries) {
      for (const [key, cached] of entries) {
        const ttl = ttlFor(cached.probed)
        if (ttl !== null) known.set(key, cached, ttl.keepMs)
      }
    },
  }
}
