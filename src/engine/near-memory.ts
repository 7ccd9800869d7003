import { type Clock, MINUTE } from '../base/clock.ts'
import { TtlMap } from '../base/ttl-map.ts'
import { isFresh, keepFor, type Remembered, type ResultMemory } from './memory.ts'

/** About 1 KB each. */
const ADDRESSES_MAX = 5_000
/** What others learn of an address meanwhile is known here after this time. */
const NEAR_MS = MINUTE

/**
 * A memory that others share, with what was last recalled and remembered here near at hand: whoever sends a form twice
 * is answered without a question to the database, and before the answer is written there.
 */
export function nearMemory(shared: ResultMemory, clock: Clock): ResultMemory {
  const near = new TtlMap<Remembered>({ sizeMax: ADDRESSES_MAX, clock })
  return {
    async recall(keys) {
      const now = clock.now()
      const found = new Map<string, Remembered>()
      const others: string[] = []
      for (const key of keys) {
        const remembered = near.get(key)
        // One that is not fresh any more may have been asked again by another.
        if (remembered !== undefined && isFresh(remembered, now)) found.set(key, remembered)
        else others.push(key)
      }
      if (others.length === 0) return found
      for (const [key, remembered] of await shared.recall(others)) {
        near.set(key, remembered, NEAR_MS)
        found.set(key, remembered)
      }
      return found
    },
    async remember(entries) {
      for (const [key, remembered] of entries) {
        if (keepFor(remembered.probed) !== null) near.set(key, remembered, NEAR_MS)
      }
      await shared.remember(entries)
    },
  }
}
