import { LRUCache } from 'lru-cache'

/**
 * Creates a cache that evicts the least recently used entry when full. Its memory grows with its
 * entries: the option `max` of LRUCache allocates all of it up front.
 */
export const createLru = <V extends object | string>(sizeMax: number): LRUCache<string, V> =>
  new LRUCache({ maxSize: sizeMax, sizeCalculation: () => 1 })
