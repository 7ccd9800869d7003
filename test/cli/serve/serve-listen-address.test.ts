import { hostname } from 'node:os'
import { describe, expect, test } from 'vitest'
import { deriveBaseUrl, listenAddress, listenUrl } from '../../../src/cli/serve/base-url.ts'
import { toConfig } from '../../../src/config/config.ts'

const config = (flags: Record<string, string> = {}) =>
  toConfig({ flags, environment: { HOME: '/home/ann' }, file: null })
const TLS = { tlsCert: 'cert.pem', tlsKey: 'key.pem' }

describe('the listen address', () => {
  test.each(['127.0.0.1:8080', '127.1.2.3:1', 'localhost:8080', '[::1]:8080'])(
    'allows plain HTTP on %s',
    listen => {
      const { files, mayBePlain } = listenAddress(config({ listen }))
      expect(files).toBeNull()
      const may = ['127.0.0.1', '::1', '192.0.2.1'].map(ip => mayBePlain(ip, null))
      expect(may).toEqual([true, true, false])
    },
  )

  test.each(['0.0.0.0:8080', '[::]:8080', '192.0.2.1:80', 'ev.example:80'])(
    'requires TLS on %s, unless plain HTTP is allowed',
    listen => {
      expect(() => listenAddress(config({ listen }))).toThrow(/does not serve plain HTTP/)
      expect(listenAddress(config({ listen, ...TLS })).files).toEqual({
        cert: 'cert.pem',
        key: 'key.pem',
      })
      expect(
        listenAddress(config({ listen, insecureHttp: 'on' })).mayBePlain('192.0.2.9', 'http'),
      ).toBe(true)
      const { mayBePlain } = listenAddress(config({ listen, trustProxy: '192.0.2.0/24' }))
      const may = (proto: string | null) =>
        ['192.0.2.9', '127.0.0.1', '198.51.100.1'].map(ip => mayBePlain(ip, proto))
      expect(may(null)).toEqual([true, true, false])
      expect(may('https')).toEqual([true, true, false])
      // A request that reached the proxy over plain HTTP may have been intercepted.
      expect(may('http')).toEqual([false, true, false])
    },
  )

  test('requires a certificate together with its key', () => {
    expect(() => listenAddress(config({ tlsCert: 'cert.pem' }))).toThrow(/--tls-key is not/)
    expect(() => listenAddress(config({ tlsKey: 'key.pem' }))).toThrow(/--tls-cert is not/)
  })
})

test.each([
  [{}, 8080, 'http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
  [{ listen: '[::1]:0' }, 4711, 'http://[::1]:4711', 'http://[::1]:4711'],
  [{ listen: '0.0.0.0:443', ...TLS }, 443, 'https://0.0.0.0:443', `https://${hostname()}`],
  [{ baseUrl: 'https://ev.example/' }, 8080, 'http://127.0.0.1:8080', 'https://ev.example'],
])('%j has a listen URL and a base URL', (flags, port, place, baseUrl) => {
  const given = config(flags as Record<string, string>)
  expect(listenUrl(listenAddress(given), port)).toBe(place)
  expect(deriveBaseUrl(given, listenAddress(given), port)).toBe(baseUrl)
})
