import { describe, expect, test } from 'vitest'
import {
  isIpv6,
  isSameIp,
  parseIp,
  reversed,
  reverseZoneName,
} from '../../../src/doctor/identity/reverse-name.ts'

describe('an IP address', () => {
  test.each(['192.0.2.256', '192.0.2', '192.0.2.1.5', '1:2', '::1%lo', '[::1]', 'a.test', '', ':'])(
    'is not %j',
    text => {
      expect(parseIp(text)).toBeNull()
    },
  )

  test('of IPv6 is equal in any notation, and IPv4 if it is mapped', () => {
    expect(isSameIp('2001:DB8:0:0::1', '2001:db8::1')).toBe(true)
    expect(isSameIp('2001:db8::192.0.2.1', '2001:db8::c000:201')).toBe(true)
    expect(isSameIp('::ffff:192.0.2.1', '192.0.2.1')).toBe(true)
    expect(isIpv6('::ffff:192.0.2.1')).toBe(false)
    expect(isSameIp('2001:db8::1', '2001:db8:1::')).toBe(false)
  })

  test('is equal only within its family, and never if it is malformed', () => {
    expect(isSameIp('192.0.2.1', '192.0.2.1')).toBe(true)
    expect(isSameIp('192.0.2.1', '::c000:201')).toBe(false)
    expect(isSameIp('192.0.2.1', '192.0.2.2')).toBe(false)
    expect(isSameIp('a.test', 'a.test')).toBe(false)
  })

  test('reversed is the name of its PTR record', () => {
    expect(reversed('192.0.2.17')).toBe('17.2.0.192')
    expect(reverseZoneName('192.0.2.17')).toBe('17.2.0.192.in-addr.arpa')
    expect(reverseZoneName('2001:db8::567:89ab')).toBe(
      'b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa',
    )
  })
})
