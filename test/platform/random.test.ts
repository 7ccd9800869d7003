import { describe, expect, test } from 'vitest'
import { shuffled, systemRandom } from '../../src/platform/random.ts'
import { countedRandom } from '../support/random.ts'

describe('chance', () => {
  test('stays below its limit and reaches all of it', () => {
    const drawn = new Set(Array.from({ length: 500 }, () => systemRandom.below(5)))
    expect([...drawn].toSorted()).toEqual([0, 1, 2, 3, 4])
  })

  test.each([0, 1, 7, 20, 300])(
    'a token of %d characters has them, of letters and digits',
    length => {
      expect(systemRandom.token(length)).toMatch(new RegExp(`^[a-z0-9]{${length}}$`))
    },
  )

  test('no two tokens are alike, and no letter is favoured', () => {
    const tokens = Array.from({ length: 1_000 }, () => systemRandom.token(36))
    expect(new Set(tokens).size).toBe(1_000)
    const counts = new Map<string, number>()
    for (const letter of tokens.join('')) counts.set(letter, (counts.get(letter) ?? 0) + 1)
    expect(counts.size).toBe(36)
    // 1,000 of each are due with a spread of 31: eight spreads are as good as never.
    for (const [letter, count] of counts) expect(Math.abs(count - 1_000), letter).toBeLessThan(250)
  })
})

describe('a shuffled copy', () => {
  test('holds the same, and leaves the list as it was', () => {
    const list = [1, 2, 3, 4, 5, 6]
    expect(shuffled(list, systemRandom).toSorted()).toEqual(list)
    expect(list).toEqual([1, 2, 3, 4, 5, 6])
    expect(shuffled([], systemRandom)).toEqual([])
  })

  test('is of the chance alone', () => {
    expect(shuffled([1, 2, 3, 4], countedRandom())).toEqual(shuffled([1, 2, 3, 4], countedRandom()))
    const orders = new Set(
      Array.from({ length: 300 }, () => shuffled([1, 2, 3], systemRandom).join()),
    )
    expect(orders.size).toBe(6)
  })
})
