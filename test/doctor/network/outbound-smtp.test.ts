import { describe, expect, test } from 'vitest'
import { isPortBlocked, portFinding } from '../../../src/doctor/network/outbound-smtp.ts'
import type { HandshakeResult, Outcome } from '../../../src/doctor/network/smtp-handshake.ts'
import { REFERENCE_MX_HOSTS } from '../../../src/engine/probe/outbound-reachability.ts'
import { greeted, refused, unreached, visited } from './visits.ts'

const find = (outcomes: readonly Outcome[], proxied = false) =>
  portFinding(
    outcomes.map((outcome, i) => visited(`mx${i + 1}.test`, outcome)),
    25,
    proxied,
  )
const TIMEOUT = unreached('ETIMEDOUT')

describe('outbound SMTP', () => {
  test('passes if all servers accept', () => {
    expect(find([greeted(), greeted()])).toEqual({
      state: 'ok',
      says: '2 of 2 mail servers accepted port 25: mx1.test, mx2.test',
      todo: null,
    })
  })

  test('passes if few do not, and names them', () => {
    expect(find([greeted(), TIMEOUT])).toMatchObject({
      state: 'ok',
      says: expect.stringContaining('; not mx2.test (not reached)'),
    })
    expect(find([greeted(), TIMEOUT, { kind: 'unresolved', fault: 'timeout' }])).toMatchObject({
      state: 'warn',
      says: expect.stringContaining('mx3.test (not found in the DNS)'),
    })
  })

  test('tells that most servers have no IPv6 address if this machine has IPv6 alone', () => {
    const noRoute = unreached('ENETUNREACH')
    expect(find([greeted(), noRoute, noRoute])).toMatchObject({
      state: 'warn',
      todo: expect.stringMatching(/no IPv6 address.*IPv4 address.*NAT64/),
    })
    expect(find([greeted(), noRoute, TIMEOUT])).toMatchObject({
      todo: expect.stringMatching(/hosting provider/),
    })
  })

  test('counts a server once, by the better of its two addresses', () => {
    const visits: HandshakeResult[] = [
      visited('mx.test', unreached('ENETUNREACH'), { ip: '2001:db8::25' }),
      visited('mx.test', greeted()),
    ]
    expect(portFinding(visits, 25, false)).toMatchObject({
      state: 'ok',
      says: '1 of 1 mail servers accepted port 25: mx.test',
    })
  })

  test('is a warning if servers reject the client, and sanitizes their replies', () => {
    const blocked = refused('Client host [192.0.2.9] blocked\u001b[2J using zen')
    expect(find([greeted(), blocked])).toMatchObject({
      state: 'warn',
      says: '1 of 2 mail servers accepted port 25; mx2.test replied "554 Client host [192.0.2.9] blocked\uFFFD[2J using zen"',
    })
    expect(find([blocked, blocked])).toMatchObject({ state: 'fail' })
  })

  describe('with a proxy on the network', () => {
    const from = (...hosts: string[]) =>
      hosts.map(host => visited(host, greeted('proxy.isp.test', 'proxy.isp.test ESMTP')))
    const [google = '', microsoft = ''] = REFERENCE_MX_HOSTS

    test('fails if it greets instead of two providers', () => {
      const visits = from(google, microsoft)
      expect(portFinding(visits, 25, false)).toEqual({
        state: 'fail',
        says: `proxy.isp.test answers on port 25 instead of the mail servers: ${google}, ${microsoft}`,
        todo: expect.stringMatching(
          /^The network intercepts outbound mail.*Ask your network.*--proxy/,
        ),
      })
      expect(portFinding(visits, 25, true)).toMatchObject({
        state: 'fail',
        todo: expect.stringMatching(/where it runs, intercepts.*another proxy/),
      })
      expect(isPortBlocked(visits)).toBe(true)
    })

    test.each([
      ['one provider', from(google)],
      ['hosts that may be one server', from('mx1.test', 'mx2.test')],
      [
        'a firewall that masks all greetings',
        [google, microsoft].map(host => visited(host, greeted('x', '*****************'))),
      ],
    ])('passes for %s', (_, visits) => {
      expect(portFinding(visits, 25, false)).toMatchObject({ state: 'ok' })
      expect(isPortBlocked(visits)).toBe(false)
    })
  })

  // Cause, outcome of all hosts, text and fix.
  test.each<[string, Outcome, RegExp, RegExp]>([
    [
      'a timeout',
      TIMEOUT,
      /connections time out/,
      /Outbound port 25 is blocked.*Ask yours.*--proxy/,
    ],
    ['refusals', unreached('ECONNREFUSED'), /all connections are refused/, /firewall/],
    ['no route', unreached('ENETUNREACH'), /no route/, /Give this machine.* a route/],
    ['a permission error', unreached('EACCES'), /permission denied/, /Allow it there/],
    [
      'a source address of another machine',
      unreached('EADDRNOTAVAIL'),
      /source address/,
      /--source-address/,
    ],
    ['an unknown error', unreached('EWHAT', 'boom'), /boom/, /blocked/],
    [
      'an intercepting proxy',
      { kind: 'mute', detail: 'closed' },
      /no mail server responds/,
      /firewall/,
    ],
    ['unresolved names', { kind: 'unresolved', fault: 'server' }, /found in the DNS/, /--dns/],
    ['private addresses', { kind: 'not-public' }, /not public/, /--allow-ranges/],
  ])('fails with %s', (_, outcome, says, todo) => {
    expect(find([outcome, outcome, outcome])).toEqual({
      state: 'fail',
      says: expect.stringMatching(says),
      todo: expect.stringMatching(todo),
    })
  })

  test('is explained by the most frequent error', () => {
    const finding = find([unreached('ECONNREFUSED'), TIMEOUT, TIMEOUT])
    expect(finding.says).toContain('connections time out')
  })

  test('distinguishes DNS problems only if an address was dialed too', () => {
    expect(find([TIMEOUT]).says).not.toContain('by address')
    const both = [visited('192.0.2.25', TIMEOUT), visited('mx.test', TIMEOUT)]
    expect(portFinding(both, 25, false).says).toContain(
      'connections time out, by name and by address',
    )
  })

  test.each<[string, Outcome, RegExp, RegExp]>([
    ['a wrong password', unreached('EPROXYAUTH'), /rejects the user name or/, /Percent-encode/],
    ['a rule', unreached('EPROXYRULE'), /a rule of the proxy forbids port 25/, /Allow.*port 25/],
    ['a busy proxy', unreached('EPROXYFAULT'), /failure of its own/, /log of the proxy.*port 25/],
    ['an unreachable server', unreached('EPROXYTARGET'), /does not reach/, /Port 25 is probably/],
    ['no proxy', unreached('EPROXYDOWN'), /no proxy responds/, /--proxy/],
    ['ssh -D', unreached('EPROXYCLOSED'), /without a reply/, /"ssh -D".*port 25 is probably/],
    [
      'interception',
      { kind: 'mute', detail: 'closed' },
      /no mail server responds/,
      /proxy.*port 25/,
    ],
  ])('through a proxy fails with %s', (_, outcome, says, todo) => {
    expect(find([outcome], true)).toEqual({
      state: 'fail',
      says: expect.stringMatching(says),
      todo: expect.stringMatching(todo),
    })
  })

  test('through a proxy reports the error of the proxy', () => {
    expect(find([unreached('', 'Socks5 Authentication failed')], true)).toMatchObject({
      state: 'fail',
      says: expect.stringContaining('through the proxy (Socks5 Authentication failed)'),
    })
  })
})
