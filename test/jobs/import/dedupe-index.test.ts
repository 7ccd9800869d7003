import { describe, expect, test } from 'vitest'
import { DedupeIndex } from '../../../src/jobs/import/import-counter.ts'
import { fc, runs } from '../../support/property.ts'
import { countedRandom } from '../../support/random.ts'

/** Returns the position that `add` returns for each row, and the repeated rows. */
function deduplicate(keys: readonly string[]) {
  const rows = new DedupeIndex(countedRandom())
  const firsts = keys.map((key, index) => rows.add(key, index + 1))
  return { firsts, repeated: [...rows.repeated()] }
}

describe('a row', () => {
  test('gets the first row with its key, and the first row its number of copies', () => {
    expect(deduplicate(['a', 'b', 'a', '', 'a', ''])).toEqual({
      firsts: [null, null, 1, null, 1, 4],
      repeated: [
        { position: 1, copies: 3 },
        { position: 4, copies: 2 },
      ],
    })
  })

  test('is recognized among 200,000 similar ones', () => {
    const keys = Array.from({ length: 200_000 }, (_, n) => `user${n}@example.com`)
    const { firsts, repeated } = deduplicate([...keys, 'user7@example.com'])
    expect(firsts.slice(0, -1).every(first => first === null)).toBe(true)
    expect([firsts.at(-1), repeated]).toEqual([8, [{ position: 8, copies: 2 }]])
  })

  test('gets the same answer as from a map of all keys', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 2 }), { maxLength: 3_000 }), keys => {
        const known = new Map<string, number>()
        const expected = keys.map((key, index) => {
          const first = known.get(key) ?? null
          if (first === null) known.set(key, index + 1)
          return first
        })
        const { firsts, repeated } = deduplicate(keys)
        expect(firsts).toEqual(expected)
        expect(repeated.reduce((sum, { copies }) => sum + copies - 1, 0)).toBe(
          expected.filter(first => first !== null).length,
        )
      }),
      { numRuns: runs(50) },
    )
  })
})
