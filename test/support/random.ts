import type { Random } from '../../src/platform/random.ts'

/**
 * A random source that counts: `below` returns 0, 1, 2 … modulo its limit, `token` returns 000001,
 * 000002 … in base 36.
 */
export function countedRandom(): Random {
  let drawn = 0
  let tokens = 0
  return {
    below: limit => drawn++ % limit,
    token: length => (++tokens).toString(36).padStart(length, '0').slice(-length),
  }
}

/** Returns a random number generator: the same seed returns the same numbers from 0 to 1. */
export function xorshift(seed: number): () => number {
  let state = seed
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}
