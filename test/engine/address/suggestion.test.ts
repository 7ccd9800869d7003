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
        const meant =
          typed === name ? null : { domain: `${name}.com`, sure: true, isImitation: true }
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
    ['comcsat.net', true],
    ['vomcast.net', true],
    ['sbcglobal.org', true],
    ['tonline.de', true],
    ['greenet.de', true],
    ['wanado.fr', true],
    ['gmxx.de', true],
    ['wbe.de', true],
    // Two typos, and a letter of a short name replaced by another.
    ['sbxglpbal.net', false],
    ['gnx.de', false],
    ['wev.de', false],
    // Squatters are not known to imitate these.
    ['ornage.fr', false],
    ['lapsote.net', false],
    ['firm.nte', false],
  ])('%s imitates a provider: %s', (typed, isImitation) => {
    expect(suggested(typed)).toMatchObject({ isImitation })
  })

  /** Every typo of one key: letters that are swapped, missing or doubled, and the key beside one. */
  const typosOf = (name: string) =>
    [...name].flatMap((letter, at) => {
      const [before, after] = [name.slice(0, at), name.slice(at + 1)]
      const [next = '', ...others] = after
      const neighbors = [...(KEYS_BESIDE[letter] ?? '')]
      return [
        `${before}${after}`,
        `${before}${letter}${letter}${after}`,
        ...(next === '' || next === letter ? [] : [`${before}${next}${letter}${others.join('')}`]),
        ...neighbors.map(key => `${before}${key}${after}`),
      ].filter(typed => typed !== name && !/^-|-$/.test(typed))
    })
  /** The keys left and right of each on a QWERTY keyboard. */
  const KEYS_BESIDE: Readonly<Record<string, string>> = Object.fromEntries(
    ['qwertyuiop', 'asdfghjkl', 'zxcvbnm'].flatMap(row =>
      [...row].map((key, at) => [key, `${row[at - 1] ?? ''}${row[at + 1] ?? ''}`]),
    ),
  )

  test.each([
    ['comcast.net', 1],
    ['sbcglobal.net', 0.97],
    ['freenet.de', 1],
    ['t-online.de', 1],
    ['wanadoo.fr', 0.96],
    ['verizon.net', 1],
    ['btinternet.com', 1],
    // A letter less makes the name of another company, and so do some neighbors.
    ['gmx.de', 0.5],
    ['web.de', 0.5],
    ['orange.fr', 0.75],
    ['proton.me', 0.8],
  ])('of all typos of one key in %s, at least the share %d is corrected', (domain, share) => {
    const [name = '', ending = ''] = domain.split('.')
    const typed = typosOf(name)
    const corrected = typed.filter(one => suggested(`${one}.${ending}`)?.domain === domain)
    expect(corrected.length / typed.length).toBeGreaterThanOrEqual(share)
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
