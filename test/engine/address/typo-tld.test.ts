import { describe, expect, test } from 'vitest'
import { correctedTld, hasRegisteredTld } from '../../../src/engine/address/typo-tld.ts'

describe('correctedTld', () => {
  test.each([
    ...[
      ['con', 'com'],
      ['c0m', 'com'],
      ['xom', 'com'],
      ['commm', 'com'],
      ['om', 'com'],
      ['c', 'com'],
    ],
    ...[
      ['ner', 'net'],
      ['ogr', 'org'],
      ['infp', 'info'],
      ['rr', null],
      ['r', 'ru'],
      ['couk', 'co.uk'],
    ],
    ...[
      ['combr', 'com.br'],
      ['frr', 'fr'],
      ['unheardof', null],
      ['lan', null],
      ['corp', null],
    ],
  ])('corrects %s to %s', (ending, meant) => {
    expect(correctedTld(ending ?? '', undefined)).toBe(meant)
  })

  test('returns a country after a second level with an extra letter', () => {
    expect(correctedTld('mxg', 'com')).toBe('mx')
    expect(correctedTld('mxg', 'firm')).toBeNull()
  })
})

describe('hasRegisteredTld', () => {
  test.each([
    'firm.com',
    'firm.museum',
    'firm.co.uk',
    'firm.xn--p1ai',
    'firm.cm',
    'firm.technology',
  ])('is true for %s', name => expect(hasRegisteredTld(name)).toBe(true))

  test.each(['firm.con', 'firm.couk', 'firm.lan', 'firm.tld'])('is false for %s', name =>
    expect(hasRegisteredTld(name)).toBe(false),
  )
})
