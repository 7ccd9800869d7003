import { expect, test } from 'vitest'
import { sanitizeText } from '../../src/platform/text.ts'
import { anyCharacter, fc, runs } from '../support/property.ts'

test.each([
  ['plain text is kept', 'Mailbox full', 'Mailbox full'],
  ['letters of all scripts are kept', 'Größe 東京 مرحبا 😀', 'Größe 東京 مرحبا 😀'],
  ['a line break becomes one space', 'a\r\n\tb', 'a b'],
  ['surrounding white space is removed', '  a \n', 'a'],
  ['an escape sequence loses its escape', '\u001b[31mred', '\ufffd[31mred'],
  ['a NUL is replaced', 'a\u0000b', 'a\ufffdb'],
  ['a direction override is replaced', 'a\u202eb', 'a\ufffdb'],
  ['a zero-width character is replaced', 'a\u200bb', 'a\ufffdb'],
  ['a line separator is replaced', 'a\u2028b', 'a\ufffdb'],
  ['a lone surrogate is replaced', 'a\ud800b', 'a\ufffdb'],
  ['a private-use character is replaced', 'a\ue000b', 'a\ufffdb'],
])('%s', (_, foreign, clean) => {
  expect(sanitizeText(foreign)).toBe(clean)
})

test('text that is too long is truncated with an ellipsis', () => {
  expect(sanitizeText('a'.repeat(256))).toBe('a'.repeat(256))
  expect(sanitizeText('a'.repeat(257))).toBe(`${'a'.repeat(255)}…`)
  expect(sanitizeText('abcdef', 4)).toBe('abc…')
})

test('any text becomes short, one line and well formed', () => {
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
