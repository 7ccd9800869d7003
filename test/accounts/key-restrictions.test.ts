import { describe, expect, test } from 'vitest'
import {
  domainAllowed,
  ipAllowed,
  readAllowedDomain,
  readAllowedIp,
} from '../../src/accounts/key-restrictions.ts'

describe('allowed addresses', () => {
  test.each<[string[], string, boolean, string]>([
    [[], '192.0.2.1', true, 'no list: any'],
    [['192.0.2.1'], '192.0.2.1', true, 'itself'],
    [['192.0.2.1'], '192.0.2.2', false, 'a neighbour'],
    [['192.0.2.0/24'], '192.0.2.255', true, 'the last of a range'],
    [['192.0.2.0/24'], '192.0.3.0', false, 'the first after it'],
    [['198.51.100.7', '192.0.2.0/24'], '192.0.2.9', true, 'any entry will do'],
    [['192.0.2.0/24'], '::ffff:192.0.2.9', true, 'IPv4 as a socket of both kinds names it'],
    [['2001:db8::/32'], '2001:DB8::1', true, 'IPv6 in another spelling'],
    [['2001:db8::/32'], '2001:db9::1', false, 'IPv6 elsewhere'],
    [['0.0.0.0/0'], '2001:db8::1', false, 'all of IPv4 is none of IPv6'],
    [['192.0.2.0/24'], 'unknown', false, 'what is no address'],
    [['192.0.2.0/24'], '', false, 'nothing'],
  ])('%j allow %s: %s (%s)', (allowedIps, ip, allowed) => {
    expect(ipAllowed({ allowedIps }, ip)).toBe(allowed)
  })

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    [' 192.0.2.0/24 ', '192.0.2.0/24'],
    ['2001:DB8::/32', '2001:db8::/32'],
    ['192.0.2.0/33', null],
    ['192.0.2', null],
    ['192.0.2.1-9', null],
    ['example.com', null],
    ['', null],
  ])('%j is stored as %j', (text, kept) => {
    expect(readAllowedIp(text)).toBe(kept)
  })
})

describe('allowed domains', () => {
  test.each<[string[], string | null, boolean, string]>([
    [[], null, true, 'no list: any, even nobody'],
    [['example.com'], 'https://example.com', true, 'itself'],
    [['example.com'], 'http://example.com:8080', true, 'with any port'],
    [['example.com'], 'https://app.example.com', true, 'below it'],
    [['example.com'], 'https://EXAMPLE.com', true, 'in other case'],
    [['example.com'], 'https://example.com.', true, 'with the root'],
    [['example.com'], 'https://example.com/form?a=b', true, 'a page of it, from Referer'],
    [['xn--bcher-kva.example'], 'https://bücher.example', true, 'in its own letters'],
    [['example.com'], 'https://badexample.com', false, 'one that ends alike'],
    [['example.com'], 'https://example.com.evil.example', false, 'one that begins alike'],
    [['example.com'], 'https://evil.example/example.com', false, 'a page named so'],
    [['example.com'], 'https://example.com@evil.example', false, 'a user named so'],
    [['app.example.com'], 'https://example.com', false, 'above it'],
    [['example.com'], null, false, 'who does not say'],
    [['example.com'], 'null', false, 'a sandboxed frame'],
    [['example.com'], 'example.com', false, 'no URL'],
    [['example.com'], 'file://example.com', false, 'no web site'],
    [['localhost'], 'http://localhost:3000', true, 'who develops'],
  ])('%j allow %s: %s (%s)', (allowedDomains, origin, allowed) => {
    expect(domainAllowed({ allowedDomains }, origin)).toBe(allowed)
  })

  test.each([
    ['Example.COM', 'example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['localhost', 'localhost'],
    ['https://example.com', null],
    ['*.example.com', null],
    ['example', null],
    ['192.0.2.1', null],
    ['[192.0.2.1]', null],
    ['', null],
  ])('%j is stored as %j', (text, kept) => {
    expect(readAllowedDomain(text)).toBe(kept)
  })
})
