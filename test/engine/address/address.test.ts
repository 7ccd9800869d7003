import { describe, expect, test } from 'vitest'
import {
  type Address,
  addressKey,
  cleanAddress,
  isFault,
  isMissing,
  parseAddress,
  wireAddress,
} from '../../../src/engine/address/address.ts'
import { readWide } from '../../../src/engine/address/several.ts'
import { fc } from '../../support/property.ts'
import { rows } from './rows.ts'

const parsed = (text: string): Address => {
  const address = parseAddress(text)
  if (isFault(address)) throw new Error(`${text}: ${address.message}`)
  return address
}

describe('parseAddress', () => {
  test.each(rows('good'))('accepts %s and sends %s: %s', (text = '', wire = '') => {
    expect(wireAddress(parsed(text))).toBe(wire === '=' ? text : wire)
  })

  test.each(rows('bad'))('rejects %j with %s at %i: %s', (text = '', fault, at) => {
    expect(parseAddress(text)).toMatchObject({ fault, at: Number(at) })
  })

  test.each(rows('bad'))('explains %j in a sentence with its clause', (text = '') => {
    const fault = parseAddress(text)
    expect(fault).toMatchObject({
      // Control and format characters could harm a terminal.
      message: expect.stringMatching(/^[A-Z`][^\p{Cc}\p{Cf}]+\.$/u),
      rule: expect.stringMatching(/^RFC \d+ §/),
    })
  })

  test.each([
    ['two@a.test, three@b.test', 'There are two addresses, two@a.test and three@b.test:'],
    [
      'Ann <a@x.test>;\n"Bob" <b@x.test>; c@',
      'There are 3 addresses, such as a@x.test and b@x.test:',
    ],
    [`${'a@x.test, '.repeat(60)}b@x.test`, 'There are two addresses, a@x.test and b@x.test:'],
  ])('names both of the addresses in %j', (text, named) => {
    expect(parseAddress(text)).toMatchObject({
      fault: 'several_addresses',
      message: `${named} write each address separately.`,
    })
  })

  test('accepts an address of 254 octets and rejects one of 255', () => {
    const local = 'x'.repeat(64)
    const longest = `${local}@${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(56)}.test`
    expect(longest).toHaveLength(254)
    expect(isFault(parseAddress(longest))).toBe(false)
    expect(parseAddress(longest.replace('ccc', 'cccc'))).toMatchObject({ fault: 'too_long' })
  })

  test('rejects an address of 254 characters but more octets', () => {
    const text = `${'ö'.repeat(30)}@${'ä'.repeat(50)}.${'ä'.repeat(50)}.${'ä'.repeat(50)}.test`
    expect(text.length).toBeLessThan(254)
    expect(parseAddress(text)).toMatchObject({ fault: 'too_long', at: text.length - 1 })
  })

  test.each([
    ['a text of 300 characters is only too long', 'a'.repeat(300), 'too_long', 254],
    ['so is a list of addresses', 'a@x.test, '.repeat(300), 'too_long', 254],
    // RFC 6531: U+003C and U+0338 compose to U+226E, which would be allowed.
    ['composition hides no forbidden character', 'a<\u0338b@x.test', 'angle_bracket', 1],
    ['a closing parenthesis belongs to a comment', 'a)b@x.test', 'comment', 1],
    ['a closing bracket is one too', 'a>b@x.test', 'angle_bracket', 1],
    ['the first error counts', `${'a'.repeat(70)}(x)@x.test`, 'comment', 70],
  ])('%s', (_, text, fault, at) => {
    expect(parseAddress(text)).toMatchObject({ fault, at })
  })

  test('a quoted local part may look like a list of addresses (RFC 5321 §4.1.2)', () => {
    const text = '"a@x.test, b@x.test"@mail.example'
    expect(wireAddress(parsed(text))).toBe(text)
  })

  test.each([
    ['', 'empty', true],
    ['n/a', 'placeholder', true],
    ['none', 'placeholder', true],
    ['ann', 'no_at', false],
    ['ann@', 'no_domain', false],
  ])('%j is %s; a row that says so has no address: %s', (text, fault, missing) => {
    const error = parseAddress(text)
    if (!isFault(error)) throw new Error('accepted')
    expect([error.fault, isMissing(error)]).toEqual([fault, missing])
  })

  test('keeps the text as in the input, in NFC', () => {
    expect(parsed('Jose\u0301@Mail.Example').text).toBe('José@Mail.Example')
    expect(parsed('"ann"@mail.example').text).toBe('"ann"@mail.example')
  })

  test('a parsed address parses to the same key', () => {
    for (const [text = ''] of rows('good')) {
      const address = parsed(text)
      expect(addressKey(parsed(wireAddress(address)))).toBe(addressKey(address))
    }
  })
})

describe('addressKey', () => {
  test('ignores needless quoting, the case of the domain and U-labels', () => {
    expect(addressKey(parsed('"ann"@GRÅ.example'))).toBe(
      addressKey(parsed('ann@xn--gr-zia.example')),
    )
  })

  test('respects the case of the local part', () => {
    expect(addressKey(parsed('Ann@mail.example'))).not.toBe(addressKey(parsed('ann@mail.example')))
  })
})

describe('cleanAddress', () => {
  test.each(rows('pasted'))('reduces %j to %j, without: %s', (pasted = '', clean, notes) => {
    const { text, notes: removed, address } = cleanAddress(pasted)
    expect(text).toBe(clean)
    expect(removed).toEqual(notes === '' ? [] : notes?.split(', '))
    const parsed = parseAddress(text)
    expect(address).toEqual(isFault(parsed) ? null : parsed)
  })

  test.each([
    ['<<<<<ann@x.test>>>>>', ['angle brackets']],
    ['smtp:ann@x.test', ['smtp:']],
    ['To:  ann@x.test', ['label']],
    ['"Ann @ Home" <ann@x.test>', ['display name', 'angle brackets']],
    ['[ {"email" : [ "ann@x.test"', ['JSON', 'wrapping quotes']],
    ['"ann@x.test" ]}', ['JSON', 'wrapping quotes']],
    ['="ann@x.test"', ['formula']],
    ['ann@x.test_x000D_', ['escapes', 'surrounding space']],
    ['ann&#64;x&#x2E;test&nbsp;', ['escapes', 'surrounding space']],
    ['Ann &lt;ann@x.test&gt;', ['escapes', 'display name', 'angle brackets']],
  ])('finds the address in %j, and names each wrapping once', (pasted, notes) => {
    expect(cleanAddress(pasted)).toMatchObject({ text: 'ann@x.test', notes })
  })

  test.each([
    'xsmtp:ann@x.test',
    '<ann@x.test',
    'x1To: ann@x.test',
    'x["ann@x.test"',
    'Ann <ann@x.test> Lee',
    'Ann <a@x.test>, Bob <b@x.test>',
    'ann .lee@x.test',
    '<>',
    "'",
    '""',
  ])('leaves %j as it is, because it would guess', pasted => {
    expect(cleanAddress(pasted)).toEqual({ text: pasted, notes: [], address: null })
  })

  test('decodes the characters that HTML escapes in an address, and nothing in a valid one', () => {
    expect(cleanAddress('o&#039;neil&amp;sons@x.test').text).toBe("o'neil&sons@x.test")
    expect(cleanAddress('a&amp@x.test')).toMatchObject({ text: 'a&amp@x.test', notes: [] })
    expect(cleanAddress('a_x000D_@x.test')).toMatchObject({ text: 'a_x000D_@x.test', notes: [] })
  })

  test('removes five wrappings and no more', () => {
    expect(cleanAddress('<<<<<<ann@x.test>>>>>>')).toMatchObject({
      text: '<ann@x.test>',
      address: null,
    })
  })

  test('never changes a valid address, except that full-width forms become ASCII', () => {
    for (const [text = ''] of rows('good')) {
      expect(cleanAddress(text)).toMatchObject({ text: readWide(text), notes: [] })
    }
  })

  test('extracts any address from any wrapping', () => {
    const wrappings = fc.constantFrom(
      (text: string) => ` ${text}\t`,
      (text: string) => `<${text}>`,
      (text: string) => `Ann Lee <${text}>`,
      (text: string) => `mailto:${encodeURIComponent(text)}`,
      (text: string) => `\`${text}\``,
      (text: string) => `${text};`,
    )
    const plain = rows('good')
      .map(([text = '']) => text)
      .filter(text => /^[\w.]+@[\w.]+$/.test(text))
    fc.assert(
      fc.property(fc.constantFrom(...plain), wrappings, (text, wrap) => {
        expect(cleanAddress(wrap(text)).text).toBe(text)
      }),
    )
  })

  test('does not process a text of a megabyte', () => {
    const text = `${' '.repeat(1_000_000)}ann@mail.example`
    const cleaned = cleanAddress(text)
    // Compared as booleans: a difference of a megabyte would take minutes to print.
    expect(cleaned.text === text).toBe(true)
    expect(cleaned).toMatchObject({ notes: [], address: null })
  })
})
