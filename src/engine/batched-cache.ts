import { Batcher } from '../platform/batcher.ts'
import { type Clock, MINUTE } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, writeLog } from '../platform/log.ts'
import { TtlMap } from '../platform/ttl-map.ts'
import {
  type CachedAnswer,
  isCached,
  isFresh,
  noCache,
  type ResultCache,
  ttlFor,
} from './result-cache.ts'
import { ENGINE_LOG } from './telemetry.ts'

const NO_ANSWER = Promise.resolve(null)

/** Maximum number of keys per cache read. */
const BATCH_MAX = 500

/**
 * Batches single reads of a result cache: one read is in flight at a time, and keys that arrive
 * during the read wait for the next batch. A cache failure is logged and counts as a miss, so it
 * never fails a verification. Answers from another network count as misses: what a simulator said
 * about an address says nothing about the mailbox of a real provider.
 */
export class BatchedCache {
  readonly #cache: ResultCache
  /** The network of this engine; null for the public one. */
  readonly #network: string | null
  readonly #clock: Clock
  readonly #log: Log
  readonly #reads: Batcher<string, CachedAnswer | null>
  #isClosed = false

  constructor(deps: { cache: ResultCache; network: string | null; clock: Clock; log: Log }) {
    this.#cache = deps.cache
    this.#network = deps.network
    this.#clock = deps.clock
    this.#log = deps.log
    this.#reads = new Batcher({
      clock: deps.clock,
      sizeMax: BATCH_MAX,
      keyOf: key => key,
      run: keys => this.#readBatch(keys),
    })
  }

  /** False if it never has an answer. */
  get isUsed(): boolean {
    return this.#cache !== noCache && !this.#isClosed
  }

  /** Stops reading the cache, so that its owner can close it: later reads return null. */
  close(): void {
    this.#isClosed = true
  }

  /** Returns the cached answer for a key, fresh or stale; null if there is none. Never rejects. */
  get(key: string): Promise<CachedAnswer | null> {
    return this.isUsed ? this.#reads.add(key) : NO_ANSWER
  }

  /** Writes an answer to the cache. Never rejects. */
  async set(key: string, cached: CachedAnswer): Promise<void> {
    const network = this.#network
    try {
      await this.#cache.set(new Map([[key, network === null ? cached : { ...cached, network }]]))
    } catch (error) {
      writeLog(this.#log, ENGINE_LOG.cacheNotWritten, { error: errorMessage(error) })
    }
  }

  async #readBatch(keys: readonly string[]): Promise<(CachedAnswer | null)[]> {
    if (this.#isClosed) return keys.map(() => null)
    try {
      const now = this.#clock.now()
      const known = await this.#cache.get(keys)
      return keys.map(key => {
        const cached = known.get(key)
        return cached !== undefined && this.#isOwn(cached) && isCached(cached, now) ? cached : null
      })
    } catch (error) {
      if (!this.#isClosed)
        writeLog(this.#log, ENGINE_LOG.cacheNotRead, { error: errorMessage(error) })
      return keys.map(() => null)
    }
  }

  #isOwn({ network }: CachedAnswer): boolean {
    return (network ?? null) === this.#network
  }
}

/** An entry takes about 1 KB. */
const LOCAL_ENTRIES_MAX = 5_000
/** An answer that another process writes becomes visible here after this time. */
const LOCAL_TTL_MS = MINUTE

/**
 * A shared cache with a local cache in front of it. A second request for the same address needs no
 * database read, and sees the answer before the database write is finished.
 */
export function localCache(shared: ResultCache, clock: Clock): ResultCache {
  const local = new TtlMap<CachedAnswer>({ sizeMax: LOCAL_ENTRIES_MAX, clock })
  return {
    async get(keys) {
      const now = clock.now()
      const found = new Map<string, CachedAnswer>()
      const missing: string[] = []
      for (const key of keys) {
        const cached = local.get(key)
        // Another process may have refreshed a stale entry.
        if (cached !== undefined && isFresh(cached, now)) found.set(key, cached)
        else missing.push(key)
      }
      if (missing.length === 0) return found
      for (const [key, cached] of await shared.get(missing)) {
        local.set(key, cached, LOCAL_TTL_MS)
        found.set(key, cached)
      }
      return found
    },
    async set(entries) {
      for (const [key, cached] of entries) {
        if (ttlFor(cached.probed) !== null) local.set(key, cached, LOCAL_TTL_MS)
      }
      await shared.set(entries)
    },
  }
}
