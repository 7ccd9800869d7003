import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  hashEquals,
  hashSecret,
  isTestPrefix,
  isWellFormed,
  KEY_GRACE_MAX_MS,
  KEY_GRACE_MS,
  newSecret,
} from '../../src/accounts/key.ts'
import { DAY } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { countedRandom } from '../support/random.ts'

describe('a new key', () => {
  test('is ev_live_, 32 random characters and a checksum of 6', () => {
    const { text, prefix, hint } = newSecret(countedRandom(), 'live')
    // The CRC-32 of the text before it, in base 62, computed with another program.
    expect(text).toBe('ev_live_0123456789ABCDEFGHIJKLMNOPQRSTUV1TkX8W')
    expect([prefix, hint]).toEqual(['ev_live_0123', 'kX8W'])
    expect(isWellFormed(text)).toBe(true)
  })

  test('is ev_test_ if it is a test key', () => {
    const { text, prefix } = newSecret(countedRandom(), 'test')
    expect(text).toMatch(/^ev_test_0123456789ABCDEFGHIJKLMNOPQRSTUV\w{6}$/)
    expect([prefix, isWellFormed(text)]).toEqual(['ev_test_0123', true])
    expect(isWellFormed(text.replace('_test_', '_live_'))).toBe(false)
    expect(isTestPrefix(prefix)).toBe(true)
    expect(isTestPrefix(newSecret(countedRandom(), 'live').prefix)).toBe(false)
  })

  test('is ev_pub_ if it is publishable', () => {
    const { text, prefix } = newSecret(countedRandom(), 'pub')
    expect(text).toMatch(/^ev_pub_0123456789ABCDEFGHIJKLMNOPQRSTUV\w{6}$/)
    expect([prefix, isWellFormed(text)]).toEqual(['ev_pub_0123', true])
    expect(isWellFormed(text.replace('_pub_', '_live_'))).toBe(false)
  })

  test('uses all 62 characters and never repeats', () => {
    const texts = Array.from({ length: 200 }, () => newSecret(systemRandom, 'live').text)
    expect(new Set(texts).size).toBe(200)
    expect(texts.every(isWellFormed)).toBe(true)
    expect(new Set(texts.flatMap(text => [...text.slice(8, 40)])).size).toBe(62)
  })

  test('is stored as its SHA-256 only', () => {
    const { text, hash } = newSecret(countedRandom(), 'live')
    expect(hash).toBe(createHash('sha256').update(text).digest('hex'))
    expect(hashSecret(text)).toBe(hash)
  })
})

describe('a text is not a key', () => {
  const { text } = newSecret(systemRandom, 'live')
  const other = (character: string) => (character === 'a' ? 'b' : 'a')

  test('if any one character differs', () => {
    for (let at = 0; at < text.length; at++) {
      const wrong = `${text.slice(0, at)}${other(text[at] as string)}${text.slice(at + 1)}`
      expect(isWellFormed(wrong), wrong).toBe(false)
    }
  })

  test.each([
    ['empty', ''],
    ['truncated', text.slice(0, -1)],
    ['longer', `${text}a`],
    ['with a line break', `${text}\n`],
    ['with a space', ` ${text}`],
    ['of another type', text.replace('live', 'test')],
    ['in another case', text.toUpperCase()],
    ['beyond ASCII', `${text.slice(0, -1)}é`],
  ])('if it is %s', (_, wrong) => {
    expect(isWellFormed(wrong)).toBe(false)
  })

  test.each(['prod', 'x_ev_live', ''])(
    'if it is of the unknown type %j, with a valid checksum',
    kind => {
      expect(isWellFormed(newSecret(systemRandom, kind as never).text)).toBe(false)
    },
  )
})

test('the secret before a rotation works for a day by default, and for a week at most', () => {
  expect([KEY_GRACE_MS, KEY_GRACE_MAX_MS]).toEqual([DAY, 7 * DAY])
})

test('hashes are equal only if all characters are', () => {
  expect(hashEquals('abc', 'abc')).toBe(true)
  expect(hashEquals('abc', 'abd')).toBe(false)
  expect(hashEquals('abc', 'ab')).toBe(false)
})
