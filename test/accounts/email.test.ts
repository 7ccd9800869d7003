import { describe, expect, test } from 'vitest'
import { parseEmail } from '../../src/accounts/email.ts'

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
    ['', 'no address'],
    ['owner@', 'no address'],
    ['a@shop.example,b@shop.example', 'no address'],
    ['Owner <owner@shop.example>', 'no address'],
    ['owner@shop.example\r\nBcc: eve@evil.example', 'no address'],
    ['owner@localhost', 'no address'], // The log takes what stays on this machine.
    ['"a b"@shop.example', 'many mail servers do not take'],
    ['üser@shop.example', 'many mail servers do not take'],
    ['owner@[192.0.2.1]', 'many mail servers do not take'],
  ])('rejects %j', (given, why) => {
    const fault = why === 'no address' ? expect.any(String) : null
    expect(() => parseEmail(given)).toThrow(
      expect.objectContaining({ code: 'email_invalid', facts: { email: given, fault } }),
    )
  })
})
