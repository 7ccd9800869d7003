import { Batcher } from '../platform/batcher.ts'
import { type Clock, MINUTE } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import type { Log } from '../platform/log.ts'
import { TtlMap } from '../platform/ttl-map.ts'
import { type CachedAnswer, isCached, isFresh, type ResultCache, ttlFor } from './result-cache.ts'

/** Keys of one question to the memory. */
const BATCH_MAX = 500

/**
 * Recalls for many who ask singly: one question at a time, and who comes meanwhile goes with the next.
 * A memory that fails knows nothing, and ends nobody's verification.
 */
export class BatchedCache {
  readonly #cache: ResultCache
  readonly #clock: Clock
  readonly #log: Log
  readonly #recalls: Batcher<string, CachedAnswer | null>

  constructor(deps: { cache: ResultCache; clock: Clock; log: Log }) {
    this.#cache = deps.cache
    this.#clock = deps.clock
    this.#log = deps.log
    this.#recalls = new Batcher({
      ...{ clock: deps.clock, sizeMax: BATCH_MAX, keyOf: key => key },
      run: keys => this.#known(keys),
    })
  }

  /** The answer that is kept for this address, fresh or not; else null. Never rejects. */
  get(key: string): Promise<CachedAnswer | null> {
    return this.#recalls.add(key)
  }

  /** Never rejects. */
  async set(entries: ReadonlyMap<string, CachedAnswer>): Promise<void> {
    try {
      if (entries.size > 0) await this.#cache.set(entries)
    } catch (error) {
      this.#log.warn('answers could not be remembered', { error: errorMessage(error) })
    }
  }

  async #known(keys: readonly string[]): Promise<(CachedAnswer | null)[]> {
    try {
      const now = this.#clock.now()
      const known = await this.#cache.get(keys)
      return keys.map(key => {
        const cached = known.get(key)
        return cached !== undefined && isCached(cached, now) ? cached : null
      })
    } catch (error) {
      this.#log.warn('answers could not be recalled', { error: errorMessage(error) })
      return keys.map(() => null)
    }
  }
}

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
