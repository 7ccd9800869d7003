import { LRUCache } from 'lru-cache'
import type { Database } from '../db/database.ts'
import { SECOND } from '../platform/clock.ts'
import { type FoundKey, findKeyByHash, keyChanges } from './key-store.ts'

/** How late a key that another process changed or revoked is noticed. */
const FRESH_MS = SECOND

/** Keys in use at the same time; about 1 KB each. */
const KEYS_MAX = 10_000

/**
 * As `findKeyByHash`, from memory where it was asked a moment ago. What this process changes holds at once, and
 * what another one does (`ev keys revoke`) within a second. Hashes of no key are not kept: anybody can send those.
 */
export async function getCachedKey(database: Database, hash: string): Promise<FoundKey | null> {
  const cache = cacheFor(database)
  const [now, changes] = [database.clock.monotonicNow(), keyChanges()]
  const known = cache.get(hash)
  if (known?.changes === changes && now < known.freshUntil) return known.found
  const found = await findKeyByHash(database, hash)
  if (found === null) cache.delete(hash)
  else cache.set(hash, { found, changes, freshUntil: now + FRESH_MS })
  return found
}

type Known = { readonly found: FoundKey; readonly changes: number; readonly freshUntil: number }

const memories = new WeakMap<Database, LRUCache<string, Known>>()

function cacheFor(database: Database): LRUCache<string, Known> {
  const known = memories.get(database) ?? new LRUCache<string, Known>({ max: KEYS_MAX })
  memories.set(database, known)
  return known
}
