import { describe, expect, test } from 'vitest'
import { clientIp } from '../../src/api/request-context.ts'

const ipOf = (trusted: string[], remoteAddress: string | undefined, forwarded?: string) =>
  clientIp(trusted)({ socket: { remoteAddress } }, () => forwarded)

describe('the address of a client', () => {
  test('is that of its socket, whatever its headers say', () => {
    expect(ipOf([], '192.0.2.1', '198.51.100.1')).toBe('192.0.2.1')
    expect(ipOf(['10.0.0.0/8'], '192.0.2.1', '198.51.100.1')).toBe('192.0.2.1')
  })

  test('is an IPv4 address on a dual-stack socket', () => {
    expect(ipOf([], '::ffff:192.0.2.1')).toBe('192.0.2.1')
  })

  test('is a placeholder when the socket is already closed', () => {
    expect(ipOf([], undefined)).toBe('0.0.0.0')
  })
})

describe('behind a trusted proxy', () => {
  test.each([
    ['the address that the proxy reports', '198.51.100.1', '198.51.100.1'],
    [
      'the last one that is not a trusted proxy',
      '198.51.100.1, 203.0.113.9, 10.0.0.2',
      '203.0.113.9',
    ],
    ['not an earlier one that a client sent', '127.0.0.1, 198.51.100.1', '198.51.100.1'],
    ['without a port', '198.51.100.1:4321', '198.51.100.1'],
    ['without brackets', '[2001:db8::1]', '2001:db8::1'],
    ['without brackets and a port', '[2001:db8::1]:4321', '2001:db8::1'],
    ['the farthest proxy if all are trusted', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['the proxy if its entry is invalid', 'unknown', '10.0.0.1'],
    ['the nearest valid one after an invalid entry', 'x, 10.0.0.2', '10.0.0.2'],
    ['the proxy if its entry is empty', '', '10.0.0.1'],
  ])('it is %s', (_, forwarded, ip) => {
    expect(ipOf(['10.0.0.0/8'], '10.0.0.1', forwarded)).toBe(ip)
    expect(ipOf(['10.0.0.0/8'], '::ffff:10.0.0.1', forwarded)).toBe(ip)
  })

  test('a header of a thousand proxies is only read from its end', () => {
    const hops = `198.51.100.1, ${Array(1_000).fill('10.0.0.2').join(', ')}`
    expect(ipOf(['10.0.0.0/8'], '10.0.0.1', hops)).toBe('10.0.0.2')
  })
})
