import { describe, expect, test } from 'vitest'
import { shuffled, systemRandom } from '../../src/platform/random.ts'
import { countedRandom } from '../support/random.ts'

describe('the system source', () => {
  test('returns all integers below the limit', () => {
    const drawn = new Set(Array.from({ length: 500 }, () => systemRandom.below(5)))
    expect([...drawn].toSorted()).toEqual([0, 1, 2, 3, 4])
  })

  test.each([0, 1, 7, 20, 300])('returns a token of %d letters and digits', length => {
    expect(systemRandom.token(length)).toMatch(new RegExp(`^[a-z0-9]{${length}}$`))
  })

  test('returns unique tokens with uniformly distributed characters', () => {
    const tokens = Array.from({ length: 1_000 }, () => systemRandom.token(36))
    expect(new Set(tokens).size).toBe(1_000)
    const counts = new Map<string, number>()
    for (const letter of tokens.join('')) counts.set(letter, (counts.get(letter) ?? 0) + 1)
    expect(counts.size).toBe(36)
    // Expected are 1,000 of each, with a standard deviation of 31: 8 σ practically never occur.
    for (const [letter, count] of counts) expect(Math.abs(count - 1_000), letter).toBeLessThan(250)
  })
})

describe('a shuffled copy', () => {
  test('has the same elements, and the original is unchanged', () => {
    const list = [1, 2, 3, 4, 5, 6]
    expect(shuffled(list, systemRandom).toSorted()).toEqual(list)
    expect(list).toEqual([1, 2, 3, 4, 5, 6])
    expect(shuffled([], systemRandom)).toEqual([])
  })

  test('depends only on the random source', () => {
    expect(shuffled([1, 2, 3, 4], countedRandom())).toEqual(shuffled([1, 2, 3, 4], countedRandom()))
    const orders = new Set(
      Array.from({ length: 300 }, () => shuffled([1, 2, 3], systemRandom).join()),
    )
    expect(orders.size).toBe(6)
  })
})
