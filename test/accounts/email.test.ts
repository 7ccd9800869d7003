import { describe, expect, test } from 'vitest'
import { parseEmail } from '../../src/accounts/accounts.ts'

describe('an address for alerts', () => {
  test.each([
    ['owner@shop.example', 'owner@shop.example'],
    [' owner@shop.example\n', 'owner@shop.example'],
    ["o'neil+ev@SHOP.example", "o'neil+ev@shop.example"],
    ['owner@bücher.example', 'owner@xn--bcher-kva.example'],
  ])('accepts %j', (given, email) => {
    expect(parseEmail(given)).toBe(email)
  })

  test.each([
    ['', 'invalid'],
    ['owner@', 'invalid'],
    ['a@shop.example,b@shop.example', 'invalid'],
    ['Owner <owner@shop.example>', 'invalid'],
    ['owner@shop.example\r\nBcc: eve@evil.example', 'invalid'],
    ['owner@localhost', 'invalid'], // Mail to this machine goes to the log.
    ['"a b"@shop.example', 'not widely accepted'],
    ['üser@shop.example', 'not widely accepted'],
    ['owner@[192.0.2.1]', 'not widely accepted'],
  ])('rejects %j', (given, why) => {
    const fault = why === 'invalid' ? expect.any(String) : null
    expect(() => parseEmail(given)).toThrow(
      expect.objectContaining({ code: 'email_invalid', facts: { email: given, fault } }),
    )
  })
})
