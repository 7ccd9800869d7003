import { describe, expect, test } from 'vitest'
import { ownAddresses } from '../../../src/doctor/network/public-ip.ts'
import type { HandshakeResult } from '../../../src/doctor/network/smtp-handshake.ts'
import { greeted, refused, unreached, visited } from './visits.ts'

const OURS = {
  helo: 'probe.test',
  sourceAddress: null,
  proxied: false,
  isPublic: (ip: string) => !ip.startsWith('10.'),
}
const repliesWith = (...lines: string[]) =>
  lines.map((line, i) => visited(`mx${i}.test`, greeted(line)))
const find = (visits: readonly HandshakeResult[], ours: Partial<typeof OURS> | object = {}) =>
  ownAddresses(visits, { ...OURS, ...ours })

describe('the public IP address', () => {
  // EHLO replies that report the client address.
  test.each([
    'mx.test at your service, [192.0.2.9]\nPIPELINING',
    'mx.test Hello probe.test [192.0.2.9], pleased to meet you',
    'mx.test Hello [192.0.2.9]',
    'mx.test Hello [::ffff:192.0.2.9]',
  ])('is read from the reply: %s', line => {
    expect(find(repliesWith(line))).toMatchObject({
      addresses: ['192.0.2.9'],
      finding: { state: 'ok', says: 'the public IP address is 192.0.2.9 (reported by 1 server)' },
    })
  })

  test.each([
    'mx.test\nPIPELINING [192.0.2.9]', // not in the first line
    'mx.test Hello [10.0.0.9]', // not public: an internal relay
    'mx.test Hello [not an address]',
  ])('is not read from the reply: %s', line => {
    expect(find(repliesWith(line)).addresses).toEqual([])
  })

  test.each([
    'Client host [192.0.2.9] blocked using zen.spamhaus.org',
    'Your IP 192.0.2.9 is on our list. See https://a.test/?ip=192.0.2.9&c=bl',
    'no reverse DNS for 192.0.2.9.',
  ])('is read from a rejection: %s', text => {
    expect(find([visited('mx.test', refused(text))]).addresses).toEqual(['192.0.2.9'])
  })

  test('is not read from the HELO name in a reply', () => {
    const line = 'mx.test Hello [192.0.2.8] [192.0.2.9]'
    expect(find(repliesWith(line), { helo: '[192.0.2.8]' }).addresses).toEqual(['192.0.2.9'])
    expect(
      find(repliesWith('mx.test Hello [192.0.2.8]'), { helo: '[192.0.2.8]' }).addresses,
    ).toEqual([])
  })

  test('is the most reported one of each family', () => {
    const found = find(
      repliesWith('a [192.0.2.9]', 'b [192.0.2.9]', 'c [203.0.113.1]', 'd [IPv6:2001:db8::9]'),
    )
    expect(found.addresses).toEqual(['192.0.2.9', '2001:db8::9'])
    expect(found.finding).toMatchObject({
      state: 'ok',
      says: 'the public IP address is 192.0.2.9 (reported by 2 servers) and 2001:db8::9 (reported by 1 server)',
    })
  })

  test('is a warning if it differs between servers', () => {
    const lines = [
      'a [192.0.2.9]',
      'b [192.0.2.9]',
      'c [192.0.2.9]',
      'd [192.0.2.7]',
      'e [192.0.2.7]',
    ]
    expect(find(repliesWith(...lines)).finding).toMatchObject({
      state: 'warn',
      says: expect.stringContaining('but some servers see 192.0.2.7'),
    })
  })

  test('is the public local address if no server reports it and no proxy is used', () => {
    const visits = [visited('mx.test', greeted(), { localAddress: '192.0.2.5' })]
    expect(find(visits).finding.says).toBe('the public IP address is 192.0.2.5 (local address)')
    expect(find(visits, { proxied: true }).addresses).toEqual([])
    const inside = [visited('mx.test', greeted(), { localAddress: '10.0.0.5' })]
    expect(find(inside).addresses).toEqual([])
  })

  test('is the configured source address even if no server was reached', () => {
    const visits = [visited('mx.test', unreached('ETIMEDOUT'))]
    expect(find(visits, { sourceAddress: '192.0.2.6' }).addresses).toEqual(['192.0.2.6'])
    expect(find(visits)).toMatchObject({ addresses: [], finding: { state: 'warn' } })
  })

  test('that is unknown is not blamed on port 25 if servers were reached', () => {
    expect(find([visited('mx.test', unreached('ETIMEDOUT'))]).finding.todo).toContain('port 25')
    expect(find(repliesWith('mx.test')).finding.todo).not.toContain('port 25')
  })
})
