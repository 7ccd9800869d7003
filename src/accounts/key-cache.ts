import { LRUCache } from 'lru-cache'
import type { Database } from '../db/database.ts'
import { SECOND } from '../platform/clock.ts'
import { type FoundKey, findKeyByHash, keyChanges } from './key-store.ts'

/** Time within which a change to a key by another process takes effect here. */
const FRESH_MS = SECOND

/** Size of the cache, in keys; about 1 KB each. */
const KEYS_MAX = 10_000

/**
 * Finds a key by its hash, as `findKeyByHash`, and caches it for a second. A change by this process
 * takes effect at once, a change by another process (`ev keys revoke`) within a second. A hash
 * without a key is not cached, because a client can send any number of those.
 */
export async function getCachedKey(database: Database, hash: string): Promise<FoundKey | null> {
  const cache = cacheFor(database)
  const [now, changes] = [database.clock.monotonicNow(), keyChanges()]
  const cached = cache.get(hash)
  if (cached?.changes === changes && now < cached.freshUntil) return cached.found
  const found = await findKeyByHash(database, hash)
  if (found === null) cache.delete(hash)
  else cache.set(hash, { found, changes, freshUntil: now + FRESH_MS })
  return found
}

type CachedKey = { readonly found: FoundKey; readonly changes: number; readonly freshUntil: number }

const caches = new WeakMap<Database, LRUCache<string, CachedKey>>()

function cacheFor(database: Database): LRUCache<string, CachedKey> {
  const cache = caches.get(database) ?? new LRUCache<string, CachedKey>({ max: KEYS_MAX })
  caches.set(database, cache)
  return cache
}
