import { describe, expect, test } from 'vitest'
import {
  domainAllowed,
  ipAllowed,
  readAllowedDomain,
  readAllowedIp,
} from '../../src/accounts/key-rights.ts'

describe('allowed addresses', () => {
  test.each<[string[], string, boolean, string]>([
    [[], '192.0.2.1', true, 'no list allows all'],
    [['192.0.2.1'], '192.0.2.1', true, 'the same'],
    [['192.0.2.1'], '192.0.2.2', false, 'another address'],
    [['192.0.2.0/24'], '192.0.2.255', true, 'the last of a range'],
    [['192.0.2.0/24'], '192.0.3.0', false, 'the first after the range'],
    [['198.51.100.7', '192.0.2.0/24'], '192.0.2.9', true, 'one of the entries'],
    [['192.0.2.0/24'], '::ffff:192.0.2.9', true, 'IPv4-mapped, as on a dual-stack socket'],
    [['2001:db8::/32'], '2001:DB8::1', true, 'IPv6 in another notation'],
    [['2001:db8::/32'], '2001:db9::1', false, 'IPv6 outside the range'],
    [['0.0.0.0/0'], '2001:db8::1', false, 'all of IPv4 contains no IPv6'],
    [['192.0.2.0/24'], 'unknown', false, 'not an address'],
    [['192.0.2.0/24'], '', false, 'empty'],
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
    [[], null, true, 'no list allows all, even without an origin'],
    [['example.com'], 'https://example.com', true, 'the same'],
    [['example.com'], 'http://example.com:8080', true, 'with any port'],
    [['example.com'], 'https://app.example.com', true, 'a subdomain'],
    [['example.com'], 'https://EXAMPLE.com', true, 'in upper case'],
    [['example.com'], 'https://example.com.', true, 'with the root dot'],
    [['example.com'], 'https://example.com/form?a=b', true, 'a page URL from Referer'],
    [['xn--bcher-kva.example'], 'https://bücher.example', true, 'as a U-label'],
    [['example.com'], 'https://badexample.com', false, 'a domain with the same ending'],
    [
      ['example.com'],
      'https://example.com.evil.example',
      false,
      'a domain with the same beginning',
    ],
    [['example.com'], 'https://evil.example/example.com', false, 'a path of that name'],
    [['example.com'], 'https://example.com@evil.example', false, 'a username of that name'],
    [['app.example.com'], 'https://example.com', false, 'a parent domain'],
    [['example.com'], null, false, 'no origin'],
    [['example.com'], 'null', false, 'a sandboxed frame'],
    [['example.com'], 'example.com', false, 'not a URL'],
    [['example.com'], 'file://example.com', false, 'not a website'],
    [['example.com'], 'xhttps://example.com', false, 'another scheme'],
    [['localhost'], 'http://localhost:3000', true, 'local development'],
  ])('%j allow %s: %s (%s)', (allowedDomains, origin, allowed) => {
    expect(domainAllowed({ allowedDomains }, origin)).toBe(allowed)
  })

  test.each([
    ['Example.COM', 'example.com'],
    [' example.com ', 'example.com'],
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
