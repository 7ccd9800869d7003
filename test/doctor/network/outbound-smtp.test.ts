import { describe, expect, test } from 'vitest'
import { portFinding } from '../../../src/doctor/network/outbound-smtp.ts'
import type { HandshakeResult, Outcome } from '../../../src/doctor/network/smtp-handshake.ts'
import { greeted, refused, unreached, visited } from './visits.ts'

const find = (outcomes: readonly Outcome[], proxied = false) =>
  portFinding(
    outcomes.map((outcome, i) => visited(`mx${i + 1}.test`, outcome)),
    25,
    proxied,
  )
const TIMEOUT = unreached('ETIMEDOUT')

describe('the way to mail servers', () => {
  test('is open when all greet us', () => {
    expect(find([greeted(), greeted()])).toEqual({
      state: 'ok',
      says: '2 of 2 mail servers accepted port 25: mx1.test, mx2.test',
      todo: null,
    })
  })

  test('is open when few do not, who are named', () => {
    expect(find([greeted(), TIMEOUT])).toMatchObject({
      state: 'ok',
      says: expect.stringContaining('; not mx2.test (not reached)'),
    })
    expect(find([greeted(), TIMEOUT, { kind: 'unresolved', fault: 'timeout' }])).toMatchObject({
      state: 'warn',
      says: expect.stringContaining('mx3.test (not found in the DNS)'),
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

  test('is open but we are not wanted: what they say is shown clean', () => {
    const blocked = refused('Client host [192.0.2.9] blocked\u001b[2J using zen')
    expect(find([greeted(), blocked])).toMatchObject({
      state: 'warn',
      says: '1 of 2 mail servers accepted port 25; mx2.test replied "554 Client host [192.0.2.9] blocked\uFFFD[2J using zen"',
    })
    expect(find([blocked, blocked])).toMatchObject({ state: 'fail' })
  })

  // What happened to all, what is said of it, and what to do.
  test.each<[string, Outcome, RegExp, RegExp]>([
    ['silence', TIMEOUT, /connections time out/, /Outbound port 25 is blocked.*Ask yours.*--proxy/],
    ['refusals', unreached('ECONNREFUSED'), /all connections are refused/, /firewall/],
    ['no route', unreached('ENETUNREACH'), /no route/, /Give this machine.* a route/],
    ['a ban', unreached('EACCES'), /permission denied/, /Allow it there/],
    ['a foreign source', unreached('EADDRNOTAVAIL'), /source address/, /--source-address/],
    ['what nobody knows', unreached('EWHAT', 'boom'), /boom/, /blocked/],
    ['somebody between', { kind: 'mute', detail: 'closed' }, /no mail server responds/, /firewall/],
    ['no names', { kind: 'unresolved', fault: 'server' }, /found in the DNS/, /--dns/],
    ['private addresses', { kind: 'not-public' }, /not public/, /--allow-ranges/],
  ])('is closed by %s', (_, outcome, says, todo) => {
    expect(find([outcome, outcome, outcome])).toEqual({
      state: 'fail',
      says: expect.stringMatching(says),
      todo: expect.stringMatching(todo),
    })
  })

  test('is closed by what happened to most', () => {
    const finding = find([unreached('ECONNREFUSED'), TIMEOUT, TIMEOUT])
    expect(finding.says).toContain('connections time out')
  })

  test('is not told from trouble with the DNS unless an address was dialled too', () => {
    expect(find([TIMEOUT]).says).not.toContain('by address')
    const both = [visited('192.0.2.25', TIMEOUT), visited('mx.test', TIMEOUT)]
    expect(portFinding(both, 25, false).says).toContain(
      'connections time out, by name and by address',
    )
  })

  test('through a proxy is closed by the proxy', () => {
    expect(find([unreached('', 'Socks5 Authentication failed')], true)).toMatchObject({
      state: 'fail',
      says: expect.stringContaining('through the proxy (Socks5 Authentication failed)'),
    })
  })
})
