import { describe, expect, test } from 'vitest'
import { createSecretBox } from '../../src/platform/secret-box.ts'
import { decryptHeaders, patchHeaders, redact } from '../../src/webhooks/custom-headers.ts'
import { countedRandom } from '../support/random.ts'

const BOX = createSecretBox('a secret of tests', countedRandom())

describe('a custom header', () => {
  test.each([
    ['Authorization', 'Bearer 4f9c21'],
    ['X-Api-Key', ' padded '],
    ['x_token', '~!@#$%^&*()_+ {}"'],
    ['Cookie', 'a=b'],
  ])('%s is accepted', (name, value) => {
    const headers = patchHeaders(BOX, {}, { [name]: value })
    expect(decryptHeaders(BOX, headers)).toEqual({ [name]: value.trim() })
  })

  test.each([
    ['Host', 'sets this header itself'],
    ['content-length', 'sets this header itself'],
    ['Transfer-Encoding', 'sets this header itself'],
    ['Connection', 'sets this header itself'],
    ['Proxy-Authorization', 'sets this header itself'],
    ['Webhook-Signature', 'sets this header itself'],
    ['X-EV-Signature', 'sets this header itself'],
    ['User-Agent', 'sets this header itself'],
    ['', 'letters, digits'],
    ['X Token', 'letters, digits'],
    ['X-Token\r\nHost', 'letters, digits'],
    ['é', 'letters, digits'],
    ['x'.repeat(101), 'letters, digits'],
  ])('%j is refused as a name', (name, fault) => {
    expect(() => patchHeaders(BOX, {}, { [name]: 'a' })).toThrow(
      expect.objectContaining({
        code: 'webhook_header_rejected',
        facts: { name, fault: expect.stringContaining(fault) },
      }),
    )
  })

  test.each([
    ['', 'is empty'],
    [' ', 'is empty'],
    ['a\r\nX-Other: b', 'printable ASCII'],
    ['a\u0000', 'printable ASCII'],
    ['é', 'printable ASCII'],
    ['x'.repeat(2_001), 'up to 2000'],
  ])('%j is refused as a value', (value, fault) => {
    expect(() => patchHeaders(BOX, {}, { 'X-A': value })).toThrow(
      expect.objectContaining({ facts: { name: 'X-A', fault: expect.stringContaining(fault) } }),
    )
  })
})

test('a webhook has at most ten custom headers, stored ones included', () => {
  const ten = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`X-${n}`, 'a']))
  const headers = patchHeaders(BOX, {}, ten)
  expect(Object.keys(headers)).toHaveLength(10)
  expect(() => patchHeaders(BOX, headers, { 'X-More': 'a' })).toThrow(
    expect.objectContaining({ code: 'webhook_header_rejected' }),
  )
  expect(Object.keys(patchHeaders(BOX, headers, { 'X-0': null, 'X-More': 'a' }))).toHaveLength(10)
})

test('names that differ only in case are refused', () => {
  expect(() => patchHeaders(BOX, {}, { 'X-A': 'a', 'x-a': 'b' })).toThrow(
    expect.objectContaining({ facts: { name: 'X-A', fault: 'Two names differ only in case.' } }),
  )
})

test('headers of another secret are null', () => {
  expect(decryptHeaders(BOX, { 'X-A': 'encrypted elsewhere' })).toBeNull()
})

test('values are replaced wherever a text repeats them', () => {
  expect(redact('a token, b token', { 'X-A': 'token', 'X-B': 'b ' })).toBe(
    'a [hidden], [hidden][hidden]',
  )
})
