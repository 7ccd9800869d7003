import { describe, expect, test } from 'vitest'
import { typoDistance } from '../../src/platform/typo-distance.ts'
import { fc } from '../support/property.ts'

const label = fc.string({ unit: fc.constantFrom(...'abceghilmnot0'), minLength: 1, maxLength: 9 })

describe('typoDistance', () => {
  test.each([
    ['gmail', 'gmail', 0, 'no slip'],
    ['gmial', 'gmail', 1, 'two keys swapped'],
    ['gmal', 'gmail', 1, 'a key left out'],
    ['gmaiil', 'gmail', 0.75, 'a key struck twice'],
    ['gmsail', 'gmail', 1, 'two keys that touch struck at once'],
    ['gomail', 'gmail', 1.25, 'a far key added'],
    ['gnail', 'gmail', 1, 'a key that touches'],
    ['gmaxl', 'gmail', 1.5, 'a far key'],
    ['fmail', 'gmail', 2, 'a wrong start'],
    ['yah0o', 'yahoo', 1, 'a digit that looks alike'],
  ])('%s for %s costs %d: %s', (typed, meant, cost) => {
    expect(typoDistance(typed, meant)).toBe(cost)
  })

  test('a limit does not change smaller distances', () => {
    fc.assert(
      fc.property(label, label, (typed, meant) => {
        const cost = typoDistance(typed, meant)
        for (const limit of [0.5, 1, 2, 3]) {
          if (cost <= limit) expect(typoDistance(typed, meant, limit)).toBe(cost)
          else expect(typoDistance(typed, meant, limit)).toBeGreaterThan(limit)
        }
      }),
    )
  })
})
