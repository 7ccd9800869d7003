import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'

/** A bounded map whose entries expire: the oldest used goes first when it is full. */
export class TtlMap<V extends object> {
  readonly #cache: LRUCache<string, V>

  constructor(options: { sizeMax: number; clock: Clock }) {
    this.#cache = new LRUCache({
      // By `max` it would take the memory for all entries at once.
      maxSize: options.sizeMax,
      sizeCalculation: () => 1,
      ttl: 1,
      ttlResolution: 0,
      // What was set at 0 would stay for ever.
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

  /** What has not expired, the last used first. Looking at it does not count as use. */
  entries(): IterableIterator<[string, V]> {
    return this.#cache.entries()
  }

  get size(): number {
    return this.#cache.size
  }
}
