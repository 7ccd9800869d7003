import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'

/** A bounded map with expiring entries. When full it evicts the least recently used entry. */
export class TtlMap<V extends object> {
  readonly #cache: LRUCache<string, V>

  constructor(options: { sizeMax: number; clock: Clock }) {
    this.#cache = new LRUCache({
      // `max` would allocate memory for all entries up front.
      maxSize: options.sizeMax,
      sizeCalculation: () => 1,
      ttl: 1,
      ttlResolution: 0,
      // An entry set at time 0 would never expire.
      perf: { now: () => options.clock.monotonicNow() + 1 },
    })
  }

  get(key: string): V | undefined {
    return this.#cache.get(key)
  }

  set(key: string, value: V, ttlMs: number): void {
    this.#cache.set(key, value, { ttl: ttlMs })
  }

  delete(key: string): void {
    this.#cache.delete(key)
  }

  clear(): void {
    this.#cache.clear()
  }

  /** Iterates the unexpired entries, the most recently used first. Does not count as a use. */
  entries(): IterableIterator<[string, V]> {
    return this.#cache.entries()
  }

  get size(): number {
    return this.#cache.size
  }
}
