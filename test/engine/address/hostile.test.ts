import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import {
  cleanAddress,
  isFault,
  parseAddress,
  wireAddress,
} from '../../../src/engine/address/address.ts'
import { createClassifier } from '../../../src/engine/address/classifier.ts'
import { suggestDomain, suggestForSyntaxError } from '../../../src/engine/address/suggestion.ts'
import { anyCharacter, fc, runs } from '../../support/property.ts'

type Validator = {
  isEmail(text: string, options: { require_tld: boolean; ignore_max_length: boolean }): boolean
}
const { isEmail } = createRequire(import.meta.url)('validator') as Validator
const flags = createClassifier()

/** Pieces that have broken parsers: runs, escapes, marks, joiners and unusual labels. */
const piece = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 8 }),
  fc
    .tuple(fc.constantFrom(...'a.@"\\ -()<>[]:é\u200d\u0301'), fc.integer({ min: 1, max: 1_000 }))
    .map(([character, count]) => character.repeat(count)),
  fc.constantFrom(
    'xn--',
    '.xn--a',
    '@[IPv6:',
    '::',
    '\\"',
    '%40',
    'mailto:',
    '\ud800',
    '\ufdfa',
    'אa1',
  ),
)
const hostile = fc
  .array(piece, { maxLength: 12 })
  .map(pieces => pieces.join(''))
  .map(text => text.slice(0, 1_000))

/** Runs every parser of addresses. */
function readAll(text: string): void {
  const { text: clean } = cleanAddress(text)
  const address = parseAddress(clean)
  if (isFault(address)) suggestForSyntaxError(text)
  else {
    suggestDomain(address.domain)
    flags.of(address)
  }
}

const PIECES = [
  ...['a', '.', '@', '"', '\\', ' ', '-', 'é', '<', '>', '(', ')', ',', ':', '[', ']', '+', '%40'],
  ...[
    '\u200d',
    '\u0301',
    '\r\n',
    '\0',
    '\x7f',
    '\u010a',
    '\u010d',
    '\ud800',
    '\ufdfa',
    'אa1',
    '例',
  ],
  ...[
    'xn--',
    '.xn--a',
    '@[IPv6:',
    '::',
    '\\"',
    'mailto:',
    'ann',
    'ann@x.test',
    '@x.test',
    '@x.test',
  ],
]

/**
 * The same seed gives the same text: pieces that have broken parsers, repeated and mixed
 * (xorshift32).
 */
function hostileText(seed: number): string {
  let state = seed * 2_654_435_761
  const below = (limit: number) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % limit
  }
  let text = ''
  for (let left = 1 + below(8); left > 0; left--) {
    const repeats = below(4) === 0 ? 1 + below(300) : 1
    text += (PIECES[below(PIECES.length)] as string).repeat(repeats)
  }
  return text.slice(0, 1_000)
}

const REPEATED = [
  'a',
  '.',
  '@',
  '"',
  '\\',
  ' ',
  '-',
  'é',
  '<',
  '(',
  'a.',
  'a@',
  '\\"',
  '\u200d',
  'xn--',
]

/** Each piece repeated, with every ending that changes its meaning; then the seeded texts. */
function* hostileTexts(count: number): Generator<string> {
  for (const part of REPEATED) {
    for (const end of ['', '@x.test', '"', '>']) yield part.repeat(1_000) + end
    for (const start of ['', 'a@']) yield start + part.repeat(250).slice(0, 250)
  }
  for (let seed = 1; seed <= count; seed++) yield hostileText(seed)
}

/** The minimum of ten runs, in ms of CPU time of this thread, as other processes may be busy. */
function quickest(text: string): number {
  const times = Array.from({ length: 10 }, () => {
    const before = process.threadCpuUsage()
    readAll(text)
    const { user, system } = process.threadCpuUsage(before)
    return (user + system) / 1_000
  })
  return Math.min(...times)
}

describe('hostile text', () => {
  test('never throws, and an error points into the text', () => {
    fc.assert(
      fc.property(hostile, text => {
        const address = parseAddress(text)
        if (isFault(address)) {
          expect(address.at).toBeGreaterThanOrEqual(0)
          expect(address.at).toBeLessThanOrEqual(text.length)
        }
        readAll(text)
      }),
      { numRuns: runs(2_000) },
    )
  })

  test('yields no character that could end an SMTP command', () => {
    fc.assert(
      fc.property(hostile, text => {
        const address = parseAddress(text)
        if (!isFault(address))
          expect(wireAddress(address)).toMatch(/^[^\p{Cc}<>]+@[\w.:[\]-]+$|^"/u)
        if (!isFault(address))
          expect(wireAddress(address)).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u)
      }),
      { numRuns: runs(2_000) },
    )
  })

  // Seeds start at 1, so a partial run uses the same first texts.
  test('from seeds parses in under a millisecond and yields no control byte', () => {
    const slow: string[] = []
    let accepted = 0
    for (const text of hostileTexts(runs(100_000))) {
      const startedAt = performance.now()
      readAll(text)
      // Slow texts are measured again, as a garbage collection may have caused it.
      if (performance.now() - startedAt > 1 && quickest(text) > 1) slow.push(text)
      const address = parseAddress(text)
      if (isFault(address)) continue
      accepted++
      const bytes = Buffer.from(wireAddress(address), 'utf8')
      if (bytes.some(byte => byte < 0x20 || byte === 0x7f)) throw new Error(JSON.stringify(text))
    }
    expect(slow).toEqual([])
    expect(accepted).toBeGreaterThan(runs(500))
  })

  test('in the form of internationalized names is rejected before conversion', () => {
    const repeated = (label: string) => `a@${label.repeat(240 / label.length)}x.test`
    expect(parseAddress(repeated('א1.'))).toMatchObject({ fault: 'domain_too_long' })
    expect(parseAddress(repeated('\ufdfa'))).toMatchObject({ fault: 'domain_too_long' })
    expect(parseAddress(repeated('ü'))).toMatchObject({ fault: 'label_too_long' })
  })

  test('of a megabyte is rejected without parsing', () => {
    for (const run of ['a', '"', 'a.', 'é', '\u200d', '\ud800']) {
      expect(parseAddress(run.repeat(1_000_000))).toMatchObject({ fault: 'too_long' })
    }
  })
})

describe('compared with another parser', () => {
  const character = fc.constantFrom(...'abc019.-_+!\'"\\ @(),:;<>[]{}|~')
  const label = fc.string({ unit: character, minLength: 1, maxLength: 6 })
  const address = fc.tuple(label, label).map(([local, name]) => `${local}@${name}.test`)

  test('accepts what validator accepts, and validator accepts all accepted unquoted addresses', () => {
    fc.assert(
      fc.property(address, text => {
        const ours = !isFault(parseAddress(text))
        const theirs = isEmail(text, { require_tld: false, ignore_max_length: true })
        if (text.startsWith('"')) return
        expect({ text, taken: ours }).toEqual({ text, taken: theirs })
      }),
      { numRuns: runs(20_000, 40) },
    )
  })
})
