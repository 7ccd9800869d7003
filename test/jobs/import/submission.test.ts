import { describe, expect, test } from 'vitest'
import { parseRow } from '../../../src/jobs/import/submission.ts'
import { anyCharacter, fc, runs } from '../../support/property.ts'

describe('the address text of a cell', () => {
  test.each([
    ['an address', 'ann@x.test', 'ann@x.test'],
    ['space around it', '  ann@x.test\t', 'ann@x.test'],
    ['a name and angle brackets', 'Ann Lee <ann@x.test>', 'ann@x.test'],
    ['the scheme of a link', 'mailto:ann@x.test', 'ann@x.test'],
    ['nothing', '', ''],
    ['text that is not an address', 'ask Ann', 'ask Ann'],
  ])('%s: %j', (_, cell, text) => {
    expect(parseRow(cell, 1).text).toBe(text)
  })

  test('is cut beyond the length of any address, never within a character', () => {
    expect(parseRow(`${'x'.repeat(5_000)}@x.test`, 1).text).toHaveLength(1_000)
    const { text } = parseRow(`${'x'.repeat(999)}😀 and more`, 1)
    expect(text).toHaveLength(1_000)
    expect(text.isWellFormed()).toBe(true)
  })

  test('exists for any cell', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 40 }), cell => {
        const { text, dedupeKey } = parseRow(cell, 1)
        expect(text.length).toBeLessThanOrEqual(1_000)
        expect(parseRow(cell, 1).dedupeKey).toBe(dedupeKey)
      }),
      { numRuns: runs(300) },
    )
  })
})

describe('two cells are duplicates', () => {
  const same = (one: string, other: string) =>
    parseRow(one, 1).dedupeKey === parseRow(other, 2).dedupeKey

  test.each([
    ['when they are alike', 'ann@x.test', 'ann@x.test'],
    ['when only what was pasted around them differs', 'Ann <ann@x.test>', ' ann@x.test'],
    ['when their domains differ in case', 'ann@X.Test', 'ann@x.test'],
    [
      'when one has the U-label and the other the A-label',
      'ann@bücher.test',
      'ann@xn--bcher-kva.test',
    ],
    ['when they are the same malformed text', 'no address', 'no address'],
  ])('%s', (_, one, other) => {
    expect(same(one, other)).toBe(true)
  })

  test.each([
    // RFC 5321 §2.4: only the host may ignore the case of a local part.
    ['their local parts differ in case', 'Ann@x.test', 'ann@x.test'],
    ['one has a tag', 'ann+list@x.test', 'ann@x.test'],
    ['one has dots', 'a.nn@x.test', 'ann@x.test'],
    ['they are different malformed texts', 'no address', 'no  adress'],
    ['one is malformed and equals the key of the other', 'ann@@x.test', 'ann@x.test'],
  ])('not when %s', (_, one, other) => {
    expect(same(one, other)).toBe(false)
  })
})
