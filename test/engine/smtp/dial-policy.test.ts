import { describe, expect, test } from 'vitest'
import { createIpPolicy } from '../../../src/engine/smtp/dial-policy.ts'
import { fc, runs } from '../../support/property.ts'

const mayDial = createIpPolicy([])

// First and last address of each range, and the reason.
const REFUSED: [reason: string, ...ips: string[]][] = [
  ['this network', '0.0.0.0', '0.255.255.255'],
  ['private 10/8', '10.0.0.0', '10.255.255.255'],
  ['carrier NAT', '100.64.0.0', '100.100.100.200', '100.127.255.255'],
  ['loopback', '127.0.0.0', '127.0.0.1', '127.255.255.255'],
  ['Azure host', '168.63.129.16'],
  ['link-local', '169.254.0.0', '169.254.169.254', '169.254.255.255'],
  ['private 172.16/12', '172.16.0.0', '172.31.255.255'],
  ['IETF protocols', '192.0.0.0', '192.0.0.192', '192.0.0.255'],
  ['documentation', '192.0.2.0', '192.0.2.255', '198.51.100.0', '198.51.100.255'],
  ['documentation 3', '203.0.113.0', '203.0.113.255'],
  ['AS112', '192.31.196.1', '192.175.48.1', '2620:4f:8000::1'],
  ['AMT', '192.52.193.1'],
  ['6to4 relay', '192.88.99.0', '192.88.99.255'],
  ['private 192.168/16', '192.168.0.0', '192.168.255.255'],
  ['benchmarks', '198.18.0.0', '198.19.255.255'],
  ['multicast', '224.0.0.0', '239.255.255.255'],
  ['reserved', '240.0.0.0', '255.255.255.254'],
  ['broadcast', '255.255.255.255'],
  ['unspecified', '::', '0:0:0:0:0:0:0:0'],
  ['loopback v6', '::1', '0:0:0:0:0:0:0:1', '::0001'],
  ['IPv4-compatible', '::127.0.0.1', '::7f00:1', '::8.8.8.8'],
  ['IPv4-mapped', '::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:FFFF:10.0.0.1', '::ffff:8.8.8.8'],
  ['IPv4-translated', '::ffff:0:127.0.0.1'],
  ['NAT64', '64:ff9b::7f00:1', '64:ff9b::127.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b::10.0.0.1'],
  ['local NAT64', '64:ff9b:1::1', '64:ff9b:1:ffff::1', '64:ff9b:1::8.8.8.8'],
  ['discard', '100::', '100::ffff:ffff:ffff:ffff'],
  ['outside 2000::/3', '1fff:ffff::1', '4000::1', '5f00::1', '5fff::1', 'e000::1'],
  ['Teredo', '2001::1', '2001:0:ffff:ffff::1'],
  ['IETF protocols v6', '2001:2::1', '2001:10::1', '2001:20::1', '2001:1ff:ffff::1'],
  [
    'documentation v6',
    '2001:db8::',
    '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
    '3fff::1',
    '3fff:fff::1',
  ],
  ['6to4', '2002:7f00:1::', '2002:0808:0808::1', '2002:ffff::1'],
  ['6bone', '3ffe::1', '3ffe:ffff::1'],
  ['unique local', 'fc00::1', 'fd00:ec2::254', 'fdff:ffff::1'],
  ['link-local v6', 'fe80::1', 'febf:ffff::1'],
  ['site-local', 'fec0::1', 'feff::1'],
  ['multicast v6', 'ff00::1', 'ff02::1', 'ffff:ffff::1'],
  ['zone id', 'fe80::1%lo', '2600::1%eth0', '::1%1'],
  [
    'no IP',
    '',
    'localhost',
    'mx.test',
    '127.1',
    '0x7f.1',
    '0x7f000001',
    '2130706433',
    '0177.0.0.1',
  ],
  ['no IP 2', '1.2.3', '8.8.8.8 ', '8.8.8.8\0', '8.8.8.8:25', '[2600::1]', '008.8.8.8', '８.8.8.8'],
]

// The addresses next to each range, and well-known public addresses.
const ALLOWED = [
  ['1.0.0.0', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
  ['128.0.0.0', '168.63.129.15', '168.63.129.17', '169.253.255.255', '169.255.0.0'],
  ['172.15.255.255', '172.32.0.0', '191.255.255.255', '192.0.1.0', '192.0.3.0', '192.31.195.255'],
  ['192.88.98.255', '192.88.100.0', '192.167.255.255', '192.169.0.0', '198.17.255.255'],
  ['198.20.0.0', '198.51.99.255', '198.51.101.0', '203.0.112.255', '203.0.114.0'],
  ['223.255.255.255', '8.8.8.8', '2000::1', '2001:200::1', '2001:db7::1', '2001:db9::1'],
  ['2001:4860:4860::8888', '2003::1', '2600::1', '2A00:1450::1', '3ffd::1', '3fff:1000::1'],
].flat()

describe('the IP policy', () => {
  test.each(REFUSED)('denies %s', (_, ...ips) => {
    expect(ips.filter(mayDial)).toEqual([])
  })

  // RFC 6052 §3.1: the prefix must not be used for addresses that are not global.
  test('treats an address behind a NAT64 as its IPv4 address', () => {
    fc.assert(
      fc.property(fc.ipV4(), ip => {
        const [a = 0, b = 0, c = 0, d = 0] = ip.split('.').map(Number)
        const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
        const forms = [`64:ff9b::${ip}`, `64:FF9B::${hex}`, `0064:ff9b:0:0:0:0:${hex}`]
        expect(forms.map(mayDial)).toEqual(forms.map(() => mayDial(ip)))
      }),
    )
    expect(mayDial('64:ff9b::8.8.8.8')).toBe(true)
    expect(
      ['64:ff9b::1:8.8.8.8', '64:ff9b:0:1::8.8.8.8', '640:ff9b::808:808'].filter(mayDial),
    ).toEqual([])
  })

  test('allows the addresses next to a denied range', () => {
    expect(ALLOWED.filter(ip => !mayDial(ip))).toEqual([])
  })

  test('matches bit arithmetic for every IPv6 address', () => {
    fc.assert(
      fc.property(ipv6Near2000(), groups => {
        const ip = groups.map(group => group.toString(16)).join(':')
        expect(mayDial(ip)).toBe(isGlobal(groups))
      }),
      { numRuns: runs(2_000) },
    )
  })

  test('denies every form that embeds an IPv4 address', () => {
    fc.assert(
      fc.property(fc.ipV4(), ip => {
        const hex = ip
          .split('.')
          .map(Number)
          .map(byte => byte.toString(16).padStart(2, '0'))
        const [high, low] = [hex.slice(0, 2).join(''), hex.slice(2).join('')]
        const forms = [`::${ip}`, `::ffff:${ip}`, `::ffff:${high}:${low}`, `::ffff:0:${ip}`]
        const tunnels = [`64:ff9b:1::${ip}`, `2002:${high}:${low}::1`, `2001::${ip}`]
        expect([...forms, ...tunnels].filter(mayDial)).toEqual([])
      }),
    )
  })
})

describe('allowed ranges', () => {
  const inside = (range: string, ...ips: string[]) => ips.map(createIpPolicy([range]))

  test('a CIDR allows only its own addresses', () => {
    expect(inside('127.0.0.0/8', '127.0.0.1', '127.255.255.255', '10.0.0.1')).toEqual([
      true,
      true,
      false,
    ])
    expect(inside('10.1.2.0/23', '10.1.3.255', '10.1.4.0', '10.1.1.255')).toEqual([
      true,
      false,
      false,
    ])
    expect(inside('fd00:1::/33', 'fd00:1:7fff::1', 'fd00:1:8000::1')).toEqual([true, false])
  })

  test('a single address allows itself', () => {
    expect(inside('127.0.0.1', '127.0.0.1', '127.0.0.2')).toEqual([true, false])
    expect(inside('::1', '::1', '::2', '0:0:0:0:0:0:0:1')).toEqual([true, false, true])
  })

  test('public addresses remain allowed', () => {
    expect(inside('127.0.0.1/32', '8.8.8.8', '2600::1')).toEqual([true, true])
  })

  test('a mapped address is treated as its IPv4 address', () => {
    expect(inside('127.0.0.0/8', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1')).toEqual([
      true,
      true,
      false,
    ])
  })

  test('no other form of an allowed IPv4 address is allowed', () => {
    expect(inside('127.0.0.0/8', '::127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::')).toEqual([
      false,
      false,
      false,
    ])
  })

  test('a zone id is denied even inside an allowed range', () => {
    expect(inside('fe80::/10', 'fe80::1', 'fe80::1%lo')).toEqual([true, false])
  })

  test.each([
    ['', 'nothing'],
    ['localhost', 'a name'],
    ['10.0.0.0/33', 'more bits than IPv4 has'],
    ['fd00::/129', 'more bits than IPv6 has'],
    ['10.0.0.0/', 'no length'],
    ['10.0.0.0/-1', 'a negative length'],
    ['10.0.0.0/8/8', 'two lengths'],
    ['10.0.0.0/8.5', 'a fraction'],
    ['10.0.0/8', 'three bytes'],
    [' 10.0.0.0/8', 'a space'],
    ['fe80::1%lo', 'a zone'],
    ['10.0.0.1-10.0.0.9', 'a span'],
    ['*', 'a star'],
  ])('%j is not a range: %s', range => {
    expect(() => createIpPolicy([range])).toThrow(
      expect.objectContaining({
        code: 'bad_config',
        message: expect.stringContaining('is not an IP address or CIDR'),
      }),
    )
  })
})

/** Eight groups, the first of them often in or near 2000::/3 and its special blocks. */
const ipv6Near2000 = () => {
  const group = fc.integer({ min: 0, max: 0xffff })
  const first = fc.oneof(
    group,
    fc.constantFrom(0x1fff, 0x2000, 0x2001, 0x2002, 0x2003, 0x2620, 0x3ffe, 0x3fff, 0x4000),
  )
  const second = fc.oneof(
    group,
    fc.constantFrom(0, 0x1ff, 0x200, 0xdb7, 0xdb8, 0xdb9, 0xfff, 0x1000, 0x4f),
  )
  const third = fc.oneof(group, fc.constantFrom(0x7fff, 0x8000, 0x8001))
  return fc.tuple(first, second, third, group, group, group, group, group)
}

function isGlobal([first, second, third]: readonly [number, number, number, ...number[]]): boolean {
  if (first < 0x2000 || first > 0x3fff) return false
  if (first === 0x2001 && (second < 0x200 || second === 0xdb8)) return false
  if (first === 0x2002 || first === 0x3ffe) return false
  if (first === 0x2620 && second === 0x4f && third === 0x8000) return false
  return !(first === 0x3fff && second < 0x1000)
}
