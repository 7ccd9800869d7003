import { describe, expect, test } from 'vitest'
import {
  inRanges,
  isIpRange,
  isIpv6,
  isLoopback,
  isSameIp,
  networkOf,
  plainIp,
  rateLimitIp,
  splitIp,
} from '../../src/platform/ip.ts'

describe('an address', () => {
  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
  ])('%s is %s', (text, ip) => {
    expect(plainIp(text)).toBe(ip)
  })

  test.each(['', 'localhost', '192.0.2', '192.0.2.1:80', '[2001:db8::1]', '1.2.3.4, 5.6.7.8'])(
    'is not "%s"',
    text => {
      expect(plainIp(text)).toBeNull()
    },
  )
})

describe('the rate limit key', () => {
  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::1', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2:ffff::', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['1:2:3:4:5:6:192.0.2.1', '1:2:3:4::/64'],
  ])('of %s is %s', (ip, counted) => {
    expect(rateLimitIp(ip)).toBe(counted)
  })
})

describe('ranges', () => {
  test('of one family contain no address of the other', () => {
    expect([inRanges(['::/0'])('192.0.2.1'), inRanges(['0.0.0.0/0'])('::1')]).toEqual([
      false,
      false,
    ])
    expect([inRanges(['::/0'])('::1'), inRanges(['0.0.0.0/0'])('192.0.2.1')]).toEqual([true, true])
  })

  test('are addresses and CIDRs of both families', () => {
    const inside = inRanges(['192.0.2.0/24', '198.51.100.7', '2001:db8::/32', 'no range'])
    expect(['192.0.2.255', '198.51.100.7', '2001:db8:ffff::1'].every(inside)).toBe(true)
    expect(['192.0.3.0', '198.51.100.8', '2001:db9::1', 'x'].some(inside)).toBe(false)
  })

  test.each(['192.0.2.0/33', '2001:db8::/129', '192.0.2.0/', 'a.test', '/8', ''])(
    'are not "%s"',
    text => {
      expect(isIpRange(text)).toBe(false)
    },
  )
})

test.each([
  ['192.0.2.77', '192.0.2.0/24'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  // NAT64 translates all of IPv4 into one /64.
  ['64:ff9b::c000:24d', '192.0.2.0/24'],
  ['64:FF9B:0:0:0:0:192.0.2.77', '192.0.2.0/24'],
  ['64:ff9b:1::192.0.2.77', '64:ff9b:1:0::/64'],
])('%s is in the network %s', (ip, network) => {
  expect(networkOf(ip)).toBe(network)
})

test.each([
  ['127.0.0.1', true],
  ['127.255.255.255', true],
  ['128.0.0.1', false],
  ['12.7.0.1', false],
  ['::1', true],
  ['::2', false],
  ['127.example', false],
  ['', false],
])('%s is a loopback address: %s', (ip, expected) => {
  expect(isLoopback(ip)).toBe(expected)
})

describe('the parts of an IP address', () => {
  test.each(['192.0.2.256', '192.0.2', '192.0.2.1.5', '1:2', '[::1]', 'a.test', '', ':'])(
    'are none if it is %j',
    text => {
      expect(splitIp(text)).toBeNull()
    },
  )

  test('are octets, or the digits of IPv6', () => {
    expect(splitIp('192.0.2.17')).toEqual(['192', '0', '2', '17'])
    expect(splitIp('2001:db8::567:89ab')?.join('')).toBe('20010db80000000000000000056789ab')
  })
})

describe('two IP addresses', () => {
  test('of IPv6 are equal in any notation, and to IPv4 if they are mapped', () => {
    expect(isSameIp('2001:DB8:0:0::1', '2001:db8::1')).toBe(true)
    expect(isSameIp('2001:db8::192.0.2.1', '2001:db8::c000:201')).toBe(true)
    expect(isSameIp('::ffff:192.0.2.1', '192.0.2.1')).toBe(true)
    expect(isSameIp('::ffff:c000:201', '192.0.2.1')).toBe(true)
    expect(isIpv6('::ffff:192.0.2.1')).toBe(false)
    expect(isSameIp('2001:db8::1', '2001:db8:1::')).toBe(false)
  })

  test('are equal only within their family, and never if one is malformed', () => {
    expect(isSameIp('192.0.2.1', '192.0.2.1')).toBe(true)
    expect(isSameIp('192.0.2.1', '::c000:201')).toBe(false)
    expect(isSameIp('192.0.2.1', '192.0.2.2')).toBe(false)
    expect(isSameIp('a.test', 'a.test')).toBe(false)
  })
})
