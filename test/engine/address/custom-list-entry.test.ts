import { describe, expect, test } from 'vitest'
import { type CustomListName, readEntry } from '../../../src/engine/address/custom-list-entry.ts'

const LISTS: readonly CustomListName[] = ['disposable', 'allow', 'blocked', 'spamTrap']

describe.each(LISTS)('the list %s', list => {
  test.each([
    ['firm.example', 'firm.example'],
    ['FIRM.Example', 'firm.example'],
    ['@firm.example', 'firm.example'],
    ['.firm.example', 'firm.example'],
    ['*.firm.example', 'firm.example'],
    ['*@firm.example', 'firm.example'],
    ['grå.example', 'xn--gr-zia.example'],
    ['xn--gr-zia.example', 'xn--gr-zia.example'],
  ])('accepts %s as a domain', (text, key) => expect(readEntry(list, text)).toEqual({ key }))

  test.each([
    // A top-level domain alone would match too much.
    ['firm', /no dot|dot/],
    ['*.com', /dot/],
    ['firm..example', /missing/],
    ['firm.example.', /ends with a dot/],
    ['firm.example, other.example', /`,` at character 13/],
    ['"firm.example"', /is not allowed in a domain/],
    ['https://firm.example', /is not allowed in a domain/],
    ['192.0.2.1', /IP|number/],
    ['m\uFFFDller.example', /UTF-8/],
    ['ann@', /@/],
    ['ann@firm..example', /missing|@/],
  ])('rejects %s', (text, why) => {
    expect(readEntry(list, text)).toEqual({ why: expect.stringMatching(why) })
  })
})

describe('addresses', () => {
  test.each<CustomListName>(['blocked', 'spamTrap'])(
    'are entries of %s, in canonical form',
    list => {
      expect(readEntry(list, 'Ann@Firm.example')).toEqual({ key: 'ann@firm.example' })
      expect(readEntry(list, 'a.n.n+x@googlemail.com')).toEqual({ key: 'ann@gmail.com' })
      expect(readEntry(list, 'ann@grå.example')).toEqual({ key: 'ann@xn--gr-zia.example' })
    },
  )

  test.each<CustomListName>(['disposable', 'allow'])('are not entries of %s', list => {
    expect(readEntry(list, 'ann@firm.example')).toEqual({
      why: 'This is an address: leave out the @ and the part before it.',
    })
  })
})

describe('role names', () => {
  test.each([
    ['frontdesk', 'frontdesk'],
    ['Front-Desk', 'front-desk'],
    ['zahlstelle.süd', 'zahlstelle.süd'],
    // A composed letter or a letter and a mark: a lookup uses the composed letter.
    ['zahlstelle.su\u0308d', 'zahlstelle.süd'],
  ])('%s is valid', (text, key) => expect(readEntry('role', text)).toEqual({ key }))

  test.each([
    ['frontdesk@firm.example', /leave out the @/i],
    ['frontdesk@', /leave out the @/i],
    ['front+desk', /leave out the \+/i],
    ['front desk', /space/],
    ['front..desk', /dot/],
    ['x'.repeat(65), /64 octets/],
  ])('%s is invalid', (text, why) => {
    expect(readEntry('role', text)).toEqual({ why: expect.stringMatching(why) })
  })
})
