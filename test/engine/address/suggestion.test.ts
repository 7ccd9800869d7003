import { describe, expect, test } from 'vitest'
import { isFault, parseAddress } from '../../../src/engine/address/address.ts'
import { parseDomain } from '../../../src/engine/address/domain.ts'
import { suggestDomain, suggestForSyntaxError } from '../../../src/engine/address/suggestion.ts'
import { fc, runs } from '../../support/property.ts'
import { rows } from './rows.ts'

function suggested(text: string) {
  const domain = parseDomain(text)
  if (isFault(domain)) throw new Error(`${text}: ${domain.message}`)
  return suggestDomain(domain)
}

describe('suggestDomain', () => {
  test.each(rows('typo'))('corrects %s to %s, certain: %s', (typed = '', meant, sure) => {
    expect(suggested(typed)).toMatchObject({ domain: meant, sure: sure === 'yes' })
  })

  test.each(rows('real'))('keeps %s, which is %s', (domain = '') => {
    expect(suggested(domain)).toBeNull()
  })

  test('two swapped adjacent letters in a large provider are a listed typo', () => {
    const great = fc.constantFrom('gmail', 'hotmail', 'yahoo', 'outlook', 'icloud', 'googlemail')
    fc.assert(
      fc.property(great, fc.nat(), (name, seed) => {
        const at = 1 + (seed % (name.length - 2))
        const typed = name.slice(0, at) + name.charAt(at + 1) + name.charAt(at) + name.slice(at + 2)
        const meant = typed === name ? null : { domain: `${name}.com`, sure: true, large: true }
        expect(suggested(`${typed}.com`)).toEqual(meant)
      }),
    )
  })

  test('a suggestion is never corrected further', () => {
    for (const [typed = ''] of rows('typo')) {
      expect(suggested(suggested(typed)?.domain ?? '')).toBeNull()
    }
  })

  test.each([
    ['gmaxl.com', true],
    ['gmial.com', true],
    ['hotmail.com.com', true],
    ['comcsat.net', false],
    ['gmx.con', false],
    ['firm.nte', false],
  ])('%s misspells a large provider: %s', (typed, large) => {
    expect(suggested(typed)).toMatchObject({ large })
  })

  test('returns null for a literal', () => {
    expect(suggested('[192.0.2.1]')).toBeNull()
  })
})

describe('suggestForSyntaxError', () => {
  test.each(rows('repair'))('repairs %j to %s', (text = '', meant) => {
    expect(suggestForSyntaxError(text)).toBe(meant === '-' ? null : meant)
  })

  test('returns only valid addresses', () => {
    // Repairable texts with random insertions; few random texts can be repaired.
    const text = fc.constantFrom(...rows('repair').map(([text = '']) => text))
    let suggestions = 0
    fc.assert(
      fc.property(text, fc.nat(), fc.string({ maxLength: 3 }), (text, place, more) => {
        const at = place % (text.length + 1)
        const said = suggestForSyntaxError(text.slice(0, at) + more + text.slice(at))
        if (said === null) return
        suggestions++
        expect(isFault(parseAddress(said))).toBe(false)
      }),
      { numRuns: runs(1_000) },
    )
    expect(suggestions).toBeGreaterThan(0)
  })
})
