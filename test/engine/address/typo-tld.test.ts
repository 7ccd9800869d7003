import { describe, expect, test } from 'vitest'
import { correctedTld, hasRegisteredTld } from '../../../src/engine/address/typo-tld.ts'

describe('meantEnding', () => {
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
  ])('for %s is %s', (ending, meant) => {
    expect(correctedTld(ending ?? '', undefined)).toBe(meant)
  })

  test('after a second level, a letter too many shows a country', () => {
    expect(correctedTld('mxg', 'com')).toBe('mx')
    expect(correctedTld('mxg', 'firm')).toBeNull()
  })
})

describe('hasRealEnding', () => {
  test.each([
    'firm.com',
    'firm.museum',
    'firm.co.uk',
    'firm.xn--p1ai',
    'firm.cm',
    'firm.technology',
  ])('%s has one', name => expect(hasRegisteredTld(name)).toBe(true))

  test.each(['firm.con', 'firm.couk', 'firm.lan', 'firm.tld'])('%s has none', name =>
    expect(hasRegisteredTld(name)).toBe(false),
  )
})
