import { expect, test } from 'vitest'
import { sanitizeText } from '../../src/platform/text.ts'
import { anyCharacter, fc, runs } from '../support/property.ts'

test.each([
  ['plain text stays', 'Mailbox full', 'Mailbox full'],
  ['letters of all scripts stay', 'Größe 東京 مرحبا 😀', 'Größe 東京 مرحبا 😀'],
  ['a line break is one space', 'a\r\n\tb', 'a b'],
  ['white space around it goes', '  a \n', 'a'],
  ['an escape sequence loses its escape', '\u001b[31mred', '\ufffd[31mred'],
  ['a NUL is shown as what it is not', 'a\u0000b', 'a\ufffdb'],
  ['text that turns direction does not', 'a\u202eb', 'a\ufffdb'],
  ['what has no width is seen', 'a\u200bb', 'a\ufffdb'],
  ['a line separator is no line', 'a\u2028b', 'a\ufffdb'],
  ['half a character is none', 'a\ud800b', 'a\ufffdb'],
  ['a private character is none', 'a\ue000b', 'a\ufffdb'],
])('%s', (_, foreign, clean) => {
  expect(sanitizeText(foreign)).toBe(clean)
})

test('what is too long is cut, and one sees that it is', () => {
  expect(sanitizeText('a'.repeat(256))).toBe('a'.repeat(256))
  expect(sanitizeText('a'.repeat(257))).toBe(`${'a'.repeat(255)}…`)
  expect(sanitizeText('abcdef', 4)).toBe('abc…')
})

test('whatever comes in, what comes out is short, one line and well formed', () => {
  const anything = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.string(),
    fc.array(fc.nat(0xffff)).map(units => String.fromCharCode(...units)),
  )
  fc.assert(
    fc.property(anything, fc.integer({ min: 1, max: 40 }), (foreign, lengthMax) => {
      const clean = sanitizeText(foreign, lengthMax)
      expect(clean.length).toBeLessThanOrEqual(lengthMax)
      expect(clean).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
      expect(clean.isWellFormed()).toBe(true)
    }),
    { numRuns: runs(500) },
  )
})
