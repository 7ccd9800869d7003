import { describe, expect, test } from 'vitest'
import { type Domain, parseDomain } from '../../../src/engine/address/domain.ts'
import { isFault } from '../../../src/engine/address/syntax-error.ts'
import { fc, runs } from '../../support/property.ts'

const parsed = (text: string): Domain => {
  const domain = parseDomain(text)
  if (isFault(domain)) throw new Error(`${text}: ${domain.message}`)
  return domain
}

describe('parseDomain', () => {
  test('returns both forms of an internationalized name from either form', () => {
    const both = { ascii: 'xn--gr-zia.example', unicode: 'grå.example' }
    expect(parsed('GRÅ.example')).toMatchObject(both)
    expect(parsed('XN--GR-ZIA.Example')).toMatchObject(both)
  })

  test.each([
    ...['mail.test', 'a.example', 'x.invalid', 'host.localhost', 'printer.local', 'abc.onion'],
    ...['name.alt', 'nas.home.arpa', 'wiki.internal', 'TEST.Test'],
  ])('%s is a special-use name', text => {
    expect(parsed(text).kind).toBe('special')
  })

  test.each(['example.com', 'example.org', 'mytest.de', 'test.com', 'local.net', 'in-addr.arpa'])(
    '%s is an ordinary name',
    text => {
      expect(parsed(text).kind).toBe('name')
    },
  )

  test.each([
    ['[192.0.2.1]', '[192.0.2.1]'],
    ['[ipv6:2001:DB8::1]', '[IPv6:2001:db8::1]'],
  ])('%s is a literal, written %s', (text, ascii) => {
    expect(parsed(text)).toEqual({ ascii, unicode: ascii, kind: 'literal' })
  })

  // RFC 5321 §4.1.3: four numbers of at most three digits, none above 255.
  test.each([
    ['[255.255.255.255]', true],
    ['[0.0.0.0]', true],
    ['[256.1.1.1]', false],
    ['[0001.1.1.1]', false],
    ['[1e1.1.1.1]', false],
    ['[1.2.3]', false],
    ['[1.2.3.4.5]', false],
  ])('%s is an IPv4 literal: %s', (text, isLiteral) => {
    expect(isFault(parseDomain(text))).toBe(!isLiteral)
  })

  // RFC 5321 §4.1.3: eight groups, or `::` for two or more; IPv4 only at the end.
  test.each([
    ['[IPv6:1:2:3:4:5:6:7:8]', true],
    ['[IPv6:::]', true],
    ['[IPv6:::1]', true],
    ['[IPv6:1:2:3:4:5:6::]', true],
    ['[IPv6:1:2:3:4:5:6:192.0.2.1]', true],
    ['[IPv6:::192.0.2.1]', true],
    ['[IPv6:1:2:3:4:5:6:7]', false],
    ['[IPv6:1:2:3:4:5:6:7::]', false],
    ['[IPv6:1:2:3:4:5:6:7:8:9]', false],
    ['[IPv6:1::2::3]', false],
    ['[IPv6:192.0.2.1::1]', false],
    ['[IPv6:::300.1.1.1]', false],
    ['[IPv6:1:g::]', false],
    ['[IPv6:12345::1]', false],
    ['[IPv6:x1::1]', false],
    ['[IPv6:1x::1]', false],
    ['[aIPv6::]', false],
    ['[::1]', false],
  ])('%s is an IPv6 literal: %s', (text, isLiteral) => {
    expect(isFault(parseDomain(text))).toBe(!isLiteral)
  })

  test.each([
    ['b)c.test', 'comment', 1],
    ['b(c.test', 'comment', 1],
    ['b<c.test', 'angle_bracket', 1],
    ['b>c.test', 'angle_bracket', 1],
    ['b@c.test', 'two_ats', 1],
    ['b!c d.test', 'domain_character', 1],
    ['b c.test', 'domain_space', 1],
    ['[192.0.2.1\u200b]', 'hidden_character', 10],
    // UTS #46: it is mapped to "a/c", and a slash is not a letter, digit or hyphen (STD3).
    ['a\u2100b.example', 'domain_idn', 0],
  ])('%j has the error %s at %i', (text, fault, at) => {
    expect(parseDomain(text)).toMatchObject({ fault, at })
  })

  // RFC 3696 §2: only a top-level domain that is all digits is a number.
  test.each(['mail.4you', 'bücher.x1', `${'a'.repeat(63)}.4you`])('%s is a name', text => {
    expect(parsed(text).kind).toBe('name')
  })

  test.each([
    ['192.0.2.10', 'bare_ip', 0],
    ['1.2.3.4.5', 'numeric_tld', 8],
    ['a.1.2.3.4', 'numeric_tld', 8],
    ['mail.123', 'numeric_tld', 5],
  ])('%s is no name: %s at %i', (text, fault, at) => {
    expect(parseDomain(text)).toMatchObject({ fault, at })
  })

  test.each([253, 254])('a name of %i characters with a digit in its ending', length => {
    const labels = ['a', 'b', 'c'].map(letter => letter.repeat(62)).join('.')
    const name = `${labels}.${'d'.repeat(length - labels.length - '..4you'.length)}.4you`
    expect(name).toHaveLength(length)
    expect(isFault(parseDomain(name))).toBe(length > 253)
  })

  test('accepts a name of 253 characters and rejects one of 254', () => {
    const name = `${'a'.repeat(62)}.${'b'.repeat(62)}.${'c'.repeat(62)}.${'d'.repeat(59)}.test`
    expect(name).toHaveLength(253)
    expect(isFault(parseDomain(name))).toBe(false)
    expect(parseDomain(`x${name}`)).toMatchObject({ fault: 'domain_too_long' })
  })

  test('a name that is short as a U-label may be too long as an A-label', () => {
    const name = `${Array.from({ length: 8 }, () => 'ä'.repeat(25)).join('.')}.test`
    expect(name.length).toBeLessThan(253)
    expect(parseDomain(name)).toMatchObject({ fault: 'domain_too_long' })
  })

  test('shifts the position of an error to the whole address', () => {
    expect(parseDomain('mail,example', 4)).toMatchObject({
      fault: 'domain_character',
      at: 8,
      message: expect.stringContaining('character 9'),
    })
  })

  test('accepts exactly the ASCII names of at most 253 characters with valid labels and a non-numeric ending', () => {
    const isSound = (label: string) => /^[a-z0-9-]{1,63}$/.test(label) && !/^-|-$/.test(label)
    const label = fc.oneof(
      fc.string({ unit: fc.constantFrom(...'a0-_.'), maxLength: 4 }),
      fc.integer({ min: 60, max: 66 }).map(length => 'a'.repeat(length)),
    )
    const name = fc.array(label, { minLength: 1, maxLength: 4 }).map(labels => labels.join('.'))
    fc.assert(
      fc.property(name, text => {
        const labels = text.split('.')
        const isGood =
          text.length <= 253 &&
          labels.length > 1 &&
          labels.every(isSound) &&
          !/^\d+$/.test(labels.at(-1) ?? '')
        expect([text, isFault(parseDomain(text))]).toEqual([text, !isGood])
      }),
      { numRuns: runs(3_000) },
    )
  })
})

test('a cached internationalized name is the same at any position', () => {
  const first = parseDomain('Bücher.example', 4)
  expect(first).toMatchObject({ ascii: 'xn--bcher-kva.example', unicode: 'bücher.example' })
  expect(parseDomain('Bücher.example', 40)).toEqual(first)
  // Errors are not cached, because they have a position.
  expect(parseDomain('bü€cher.example', 4)).toMatchObject({ at: 6 })
  expect(parseDomain('bü€cher.example', 40)).toMatchObject({ at: 42 })
})
