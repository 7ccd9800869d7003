import { type Clock, MINUTE } from '../platform/clock.ts'
import { TtlMap } from '../platform/ttl-map.ts'
import { type CachedAnswer, isFresh, type ResultCache, ttlFor } from './result-cache.ts'

/** About 1 KB each. */
const ADDRESSES_MAX = 5_000
/** What others learn of an address meanwhile is known here after this time. */
const NEAR_MS = MINUTE

/**
 * A memory that others share, with what was last recalled and remembered here near at hand: whoever sends a form twice
 * is answered without a question to the database, and before the answer is written there.
 */
export function localCache(shared: ResultCache, clock: Clock): ResultCache {
  const near = new TtlMap<CachedAnswer>({ sizeMax: ADDRESSES_MAX, clock })
  return {
    async get(keys) {
      const now = clock.now()
      const found = new Map<string, CachedAnswer>()
      const others: string[] = []
      for (const key of keys) {
        const cached = near.get(key)
        // One that is not fresh any more may have been asked again by another.
        if (cached !== undefined && isFresh(cached, now)) found.set(key, cached)
        else others.push(key)
      }
      if (others.length === 0) return found
      for (const [key, cached] of await shared.get(others)) {
        near.set(key, cached, NEAR_MS)
        found.set(key, cached)
      }
      return found
    },
    async set(entries) {
      for (const [key, cached] of entries) {
        if (ttlFor(cached.probed) !== null) near.set(key, cached, NEAR_MS)
      }
      await shared.set(entries)
    },
  }
}
