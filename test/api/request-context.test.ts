import { describe, expect, test } from 'vitest'
import { createTestService } from '../support/service.ts'

/** Whether a key that is allowed from one address alone may be used by this client. */
async function isFrom(
  address: string,
  { trustProxy = [] as string[], peer = '192.0.2.1', forwarded = null as string | null },
): Promise<boolean> {
  const { request, addKey } = await createTestService({ settings: { trustProxy } })
  const key = await addKey({ allowedIps: [address] })
  const headers = forwarded === null ? {} : { 'X-Forwarded-For': forwarded }
  return (await request('/v1/jobs', { key, ip: peer, headers })).status === 200
}

const PROXY = { trustProxy: ['10.0.0.0/8'] }

describe('the address of a client', () => {
  test('is that of its socket, whatever its headers say', async () => {
    const forwarded = '198.51.100.1'
    for (const trusted of [{}, PROXY]) {
      expect(await isFrom('192.0.2.1', { ...trusted, forwarded })).toBe(true)
      expect(await isFrom(forwarded, { ...trusted, forwarded })).toBe(false)
    }
  })

  test('is an IPv4 address on a dual-stack socket', async () => {
    expect(await isFrom('192.0.2.1', { peer: '::ffff:192.0.2.1' })).toBe(true)
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
  ])('it is %s', async (_, forwarded, ip) => {
    for (const peer of ['10.0.0.1', '::ffff:10.0.0.1']) {
      expect(await isFrom(ip, { ...PROXY, peer, forwarded })).toBe(true)
    }
  })

  test('a header of a thousand proxies is only read from its end', async () => {
    const hops = `198.51.100.1, ${Array(1_000).fill('10.0.0.2').join(', ')}`
    expect(await isFrom('10.0.0.2', { ...PROXY, peer: '10.0.0.1', forwarded: hops })).toBe(true)
  })
})
