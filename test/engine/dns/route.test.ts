import { describe, expect, test } from 'vitest'
import { cachedResolver } from '../../../src/engine/dns/cached-resolver.ts'
import {
  addressesOf,
  cachedRouteOf,
  connectOrder,
  findRoute,
  type HostLookup,
  type Route,
} from '../../../src/engine/dns/route.ts'
import { fakeClock } from '../../support/clock.ts'
import { fc } from '../../support/property.ts'
import { countedRandom } from '../../support/random.ts'
import { type ZoneEntry, zone } from '../../support/zone.ts'

const routeOf = (entry: ZoneEntry | null) =>
  findRoute(zone(entry === null ? {} : { 'a.test': entry }), 'a.test')
const hostsOf = async (...MX: [number, string][]) => {
  const route = await routeOf({ MX })
  return route.kind === 'mx' ? route.hosts.map(record => record.host) : route.kind
}

// DNS answers, and the resulting route.
const TABLE: [what: string, entry: ZoneEntry | null, route: Route][] = [
  ['NXDOMAIN', null, { kind: 'no-domain' }],
  // Load balancers and resolvers of containers deny the name for every type that they lack.
  [
    'NXDOMAIN for MX but A',
    { MX: 'no-name', A: ['192.0.2.1'] },
    { kind: 'implicit', host: 'a.test' },
  ],
  [
    'NXDOMAIN for MX and AAAA but A',
    { MX: 'no-name', A: ['192.0.2.1'], AAAA: 'no-name' },
    { kind: 'implicit', host: 'a.test' },
  ],
  [
    'NXDOMAIN for MX and A but AAAA',
    { MX: 'no-name', A: 'no-name', AAAA: ['2001:db8::1'] },
    { kind: 'implicit', host: 'a.test' },
  ],
  ['NXDOMAIN for MX, no address', { MX: 'no-name' }, { kind: 'no-mail' }],
  ['NXDOMAIN for MX and A, no AAAA', { MX: 'no-name', A: 'no-name' }, { kind: 'no-mail' }],
  [
    'NXDOMAIN for MX, A unknown',
    { MX: 'no-name', A: 'server', AAAA: 'no-name' },
    { kind: 'unknown', fault: 'server' },
  ],
  ['SERVFAIL', 'server', { kind: 'unknown', fault: 'server' }],
  ['no answer', 'timeout', { kind: 'unknown', fault: 'timeout' }],
  [
    'one MX',
    { MX: [[10, 'mx.a.test']] },
    { kind: 'mx', hosts: [{ preference: 10, host: 'mx.a.test' }] },
  ],
  ['null MX as node:dns gives it', { MX: [[0, '']] }, { kind: 'null-mx' }],
  ['null MX as a dot', { MX: [[0, '.']] }, { kind: 'null-mx' }],
  ['null MX beside an address', { MX: [[0, '']], A: ['192.0.2.1'] }, { kind: 'null-mx' }],
  [
    'null MX beside a real one: the real one counts',
    {
      MX: [
        [0, ''],
        [10, 'mx.a.test'],
      ],
    },
    { kind: 'mx', hosts: [{ preference: 10, host: 'mx.a.test' }] },
  ],
  ['no MX but A', { A: ['192.0.2.1'] }, { kind: 'implicit', host: 'a.test' }],
  ['no MX but AAAA', { AAAA: ['2001:db8::1'] }, { kind: 'implicit', host: 'a.test' }],
  [
    'no MX, A failed but AAAA',
    { A: 'server', AAAA: ['2001:db8::1'] },
    { kind: 'implicit', host: 'a.test' },
  ],
  ['neither MX nor address', {}, { kind: 'no-mail' }],
  ['no MX, A unknown', { A: 'timeout' }, { kind: 'unknown', fault: 'timeout' }],
  ['no MX, AAAA unknown', { AAAA: 'server' }, { kind: 'unknown', fault: 'server' }],
  [
    'MX failed: the address is no way round it',
    { MX: 'server', A: ['192.0.2.1'] },
    { kind: 'unknown', fault: 'server' },
  ],
  [
    'only an IPv4 address for MX',
    { MX: [[10, '192.0.2.1']], A: ['192.0.2.1'] },
    { kind: 'no-mail' },
  ],
  [
    'only unusable names',
    {
      MX: [
        [10, ''],
        [20, 'a b.test'],
      ],
      A: ['192.0.2.1'],
    },
    { kind: 'no-mail' },
  ],
  ['itself', { MX: [[10, 'a.test']] }, { kind: 'mx', hosts: [{ preference: 10, host: 'a.test' }] }],
  [
    'localhost: the dialling judge refuses it',
    { MX: [[10, 'localhost.']] },
    { kind: 'mx', hosts: [{ preference: 10, host: 'localhost' }] },
  ],
]

describe('the route of a domain', () => {
  test.each(TABLE)('%s', async (_, entry, route) => {
    expect(await routeOf(entry)).toEqual(route)
  })

  test('sorts hosts by preference, then by name', () =>
    fc.assert(
      fc.asyncProperty(shuffledMx(), async records => {
        expect(await hostsOf(...records)).toEqual(['c.test', 'a.test', 'b.test', 'd.test'])
      }),
    ))

  test('converts a host to lower case without its trailing dot', async () => {
    expect(await hostsOf([10, 'MX.A.Test.'])).toEqual(['mx.a.test'])
  })

  test('keeps a duplicate host once, at its best preference', async () => {
    const route = await routeOf({
      MX: [
        [20, 'mx.test'],
        [10, 'MX.test.'],
        [15, 'other.test'],
      ],
    })
    expect(route).toEqual({
      kind: 'mx',
      hosts: [
        { preference: 10, host: 'mx.test' },
        { preference: 15, host: 'other.test' },
      ],
    })
  })

  test('keeps the 20 most preferred of 200 hosts', async () => {
    const all = Array.from({ length: 200 }, (_, i): [number, string] => [
      200 - i,
      `mx${200 - i}.test`,
    ])
    const kept = await hostsOf(...all)
    expect(kept).toEqual(Array.from({ length: 20 }, (_, i) => `mx${i + 1}.test`))
  })

  test.each([
    ['192.0.2.1', 'an IPv4 address'],
    ['192.0.2.1.', 'an IPv4 address with a dot'],
    ['[192.0.2.1]', 'an address literal'],
    ['2001:db8::1', 'an IPv6 address'],
    ['127.1', 'a short IPv4 address'],
    ['2130706433', 'an IPv4 address as one number'],
    ['0X7F.0X1.', 'an IPv4 address in hex'],
    ['mx.123', 'a number as last label'],
    ['..', 'no label'],
    ['mx..test', 'an empty label'],
    ['.mx.test', 'an empty first label'],
    ['mx test', 'a space'],
    ['mx\\032a.test', 'a byte escaped by the resolver'],
    ['mx\0.test', 'NUL'],
    ['mx\r\n.test', 'a line break'],
    ['mx.test\n', 'a line break at the end'],
    ['bücher.test', 'a letter beyond ASCII'],
    ['\u212A.test', 'the Kelvin sign, which lower-cases to k'],
    [`${'a'.repeat(64)}.test`, 'a label of 64 octets'],
    [`${'a.'.repeat(125)}test`, 'a name of 254 octets'],
  ])('drops an invalid host name: %j, %s', async host => {
    expect(await hostsOf([5, host], [10, 'mx.test'])).toEqual(['mx.test'])
  })

  test.each([
    `${'a'.repeat(63)}.test`,
    `${'a.'.repeat(124)}atest`,
    'mx_1.test',
    '1.2.3.test',
    'xn--bcher-kva.test',
    'mail',
    'mx.x0x1',
  ])('keeps the host name %s', async host => {
    expect(await hostsOf([10, host])).toEqual([host])
  })

  test('takes one query for an MX and three for an implicit exchanger', async () => {
    const dns = zone({ 'a.test': { MX: [[1, 'mx.test']] }, 'b.test': { A: ['192.0.2.1'] } })
    await findRoute(dns, 'a.test')
    await findRoute(dns, 'b.test')
    expect(dns.asked).toEqual(['MX a.test', 'MX b.test', 'A b.test', 'AAAA b.test'])
  })

  test('takes three queries for a domain that does not exist, and no others later', async () => {
    const dns = zone()
    const resolver = cachedResolver(dns, { clock: fakeClock() })
    expect(cachedRouteOf(resolver, 'gone.test')).toBeNull()
    await findRoute(resolver, 'gone.test')
    expect(cachedRouteOf(resolver, 'gone.test')).toEqual({ kind: 'no-domain' })
    expect(dns.asked).toEqual(['MX gone.test', 'A gone.test', 'AAAA gone.test'])
  })

  test('does not wait for AAAA if there is an IPv4 address', async () => {
    const entry: ZoneEntry = { A: ['192.0.2.1'], AAAA: 'never' }
    expect(await routeOf(entry)).toEqual({ kind: 'implicit', host: 'a.test' })
  })

  test('is unknown after an abort', async () => {
    const caller = new AbortController()
    const route = findRoute(zone({ 'a.test': { MX: 'never' } }), 'a.test', caller.signal)
    caller.abort()
    expect(await route).toEqual({ kind: 'unknown', fault: 'timeout' })
  })
})

describe('the order of connections', () => {
  const mx = (...hosts: [number, string][]): Route => ({
    kind: 'mx',
    hosts: hosts.map(([preference, host]) => ({ preference, host })),
  })

  test('follows preferences and shuffles equals', () => {
    const route = mx([10, 'a'], [10, 'b'], [10, 'c'], [20, 'd'])
    const orders = new Set<string>()
    for (let i = 0; i < 50; i++) {
      const limits = { below: (limit: number) => (i >> limit) % limit, token: () => '' }
      const order = connectOrder(route, limits)
      expect(order.toSorted()).toEqual(['a', 'b', 'c', 'd'])
      expect(order.at(-1)).toBe('d')
      orders.add(order.join(''))
    }
    expect(orders.size).toBeGreaterThan(1)
  })

  test('is the domain for an implicit exchanger', () => {
    expect(connectOrder({ kind: 'implicit', host: 'a.test' }, countedRandom())).toEqual(['a.test'])
  })

  test('is empty for a route without hosts', () => {
    const kinds: Route[] = [
      { kind: 'null-mx' },
      { kind: 'no-domain' },
      { kind: 'no-mail' },
      { kind: 'unknown', fault: 'timeout' },
    ]
    expect(kinds.map(route => connectOrder(route, countedRandom()))).toEqual([[], [], [], []])
  })
})

describe('the addresses of a host', () => {
  const addresses = (entry: ZoneEntry | null) =>
    addressesOf(zone(entry === null ? {} : { 'mx.test': entry }), 'mx.test')

  test.each<[string, ZoneEntry | null, Awaited<ReturnType<typeof addressesOf>>]>([
    [
      'IPv4 stands first',
      { AAAA: ['2001:db8::1'], A: ['192.0.2.1'] },
      { addresses: ['192.0.2.1', '2001:db8::1'] },
    ],
    ['IPv6 alone is enough', { AAAA: ['2001:db8::1'] }, { addresses: ['2001:db8::1'] }],
    [
      'a failed AAAA does not hide A',
      { A: ['192.0.2.1'], AAAA: 'timeout' },
      { addresses: ['192.0.2.1'] },
    ],
    [
      'a failed A does not hide AAAA',
      { A: 'server', AAAA: ['2001:db8::1'] },
      { addresses: ['2001:db8::1'] },
    ],
    ['one address twice is one', { A: ['192.0.2.1', '192.0.2.1'] }, { addresses: ['192.0.2.1'] }],
    ['no name', null, { fault: 'no-name' }],
    ['no address', {}, { fault: 'no-data' }],
    ['half an answer of nothing is not a no', { A: 'timeout' }, { fault: 'timeout' }],
    ['nor is the other half', { AAAA: 'server' }, { fault: 'server' }],
    [
      'NXDOMAIN and silence: the silence counts',
      { A: 'no-name', AAAA: 'timeout' },
      { fault: 'timeout' },
    ],
  ])('%s', async (_, entry, expected) => {
    expect(await addresses(entry)).toEqual(expected)
  })

  test.each<[string, ZoneEntry, string[], Awaited<ReturnType<typeof addressesOf>>]>([
    [
      'not for a host with IPv4',
      { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] },
      ['A mx.test'],
      { addresses: ['192.0.2.1'] },
    ],
    // It has an address that is unreachable here, so the result must not be "no address".
    [
      'for one without IPv4',
      { AAAA: ['2001:db8::1'] },
      ['A mx.test', 'AAAA mx.test'],
      { addresses: ['2001:db8::1'] },
    ],
    ['for one without any', {}, ['A mx.test', 'AAAA mx.test'], { fault: 'no-data' }],
    [
      'for one whose IPv4 address is not known',
      { A: 'server' },
      ['A mx.test', 'AAAA mx.test'],
      { fault: 'server' },
    ],
  ])('without local IPv6, AAAA is queried %s', async (_, entry, asked, expected) => {
    const dns = zone({ 'mx.test': entry })
    expect(await addressesOf(dns, 'mx.test', { families: 'ipv4' })).toEqual(expected)
    expect(dns.asked).toEqual(asked)
  })

  test.each<[string, ZoneEntry, string[], HostLookup]>([
    [
      'not for a host with IPv6',
      { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] },
      ['AAAA mx.test'],
      { addresses: ['2001:db8::1'] },
    ],
    [
      'for one without IPv6',
      { A: ['192.0.2.1'] },
      ['AAAA mx.test', 'A mx.test'],
      { addresses: ['192.0.2.1'] },
    ],
    ['for one without any', {}, ['AAAA mx.test', 'A mx.test'], { fault: 'no-data' }],
  ])('without local IPv4, A is queried %s', async (_, entry, asked, expected) => {
    const dns = zone({ 'mx.test': entry })
    expect(await addressesOf(dns, 'mx.test', { families: 'ipv6' })).toEqual(expected)
    expect(dns.asked).toEqual(asked)
  })

  test('do not wait for AAAA if the caller is in a hurry and there is an IPv4 address', async () => {
    const urgent = (entry: ZoneEntry) =>
      addressesOf(zone({ 'mx.test': entry }), 'mx.test', { isUrgent: true })
    expect(await urgent({ A: ['192.0.2.1'], AAAA: 'never' })).toEqual({ addresses: ['192.0.2.1'] })
    expect(await urgent({ AAAA: ['2001:db8::1'] })).toEqual({ addresses: ['2001:db8::1'] })
  })

  test('keeps five of a hundred addresses', async () => {
    const many = Array.from({ length: 100 }, (_, i) => `192.0.2.${i}`)
    expect(await addresses({ A: many })).toEqual({ addresses: many.slice(0, 5) })
  })

  // One of the families may have no route from here.
  test('keeps addresses of both families', async () => {
    const ipv4 = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5', '192.0.2.6']
    const ipv6 = ['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8::4', '2001:db8::5']
    const kept = async (a: string[], aaaa: string[]) => {
      const found = await addresses({ A: a, AAAA: aaaa })
      return 'fault' in found ? found : found.addresses
    }
    expect(await kept(ipv4, ipv6)).toEqual([...ipv4.slice(0, 3), ...ipv6.slice(0, 2)])
    expect(await kept(ipv4, ipv6.slice(0, 1))).toEqual([...ipv4.slice(0, 4), ...ipv6.slice(0, 1)])
    expect(await kept(ipv4.slice(0, 1), ipv6)).toEqual([...ipv4.slice(0, 1), ...ipv6.slice(0, 4)])
    expect(await kept([], ipv6)).toEqual(ipv6)
  })
})

const shuffledMx = () =>
  fc.shuffledSubarray<[number, string]>(
    [
      [5, 'c.test'],
      [10, 'a.test'],
      [10, 'b.test'],
      [20, 'd.test'],
    ],
    { minLength: 4 },
  )
