import { describe, expect, test } from 'vitest'
import { reverseName } from '../../../src/doctor/identity/reverse-name.ts'
import { type ZoneEntry, zone } from '../../support/zone.ts'

const SIGNAL = new AbortController().signal
const IP = '192.0.2.9'
const PTR = '9.2.0.192.in-addr.arpa'
type Names = Readonly<Record<string, ZoneEntry>>

describe('the reverse name of an address', () => {
  const GOOD: Names = { [PTR]: { PTR: ['Probe.example.com.'] }, 'probe.example.com': { A: [IP] } }
  const ptr = (names: Names, helo = 'probe.example.com') =>
    reverseName(zone(names), IP, helo, SIGNAL)

  test('passes if it resolves back and is the HELO name', async () => {
    expect(await ptr(GOOD)).toMatchObject({ state: 'ok', says: expect.stringContaining('HELO') })
  })

  test('may differ from the HELO name if that resolves to the address too', async () => {
    const names = { ...GOOD, 'mail.example.com': { A: ['192.0.2.8', IP] } }
    expect(await ptr(names, 'mail.example.com')).toMatchObject({ state: 'ok' })
    const elsewhere = { ...GOOD, 'mail.example.com': { A: ['192.0.2.8'] } }
    expect(await ptr(elsewhere, 'mail.example.com')).toMatchObject({ state: 'warn' })
    expect(await ptr(GOOD, 'mail.example.com')).toMatchObject({
      state: 'warn',
      todo: 'Set --helo probe.example.com.',
    })
  })

  test('fails if there is none, with a suggested name', async () => {
    expect(await ptr({})).toMatchObject({
      state: 'fail',
      todo: expect.stringContaining('probe.example.com'),
    })
  })

  test('fails if it does not resolve back', async () => {
    expect(await ptr({ ...GOOD, 'probe.example.com': { A: ['192.0.2.10'] } })).toMatchObject({
      state: 'fail',
      says: '192.0.2.9 has the PTR name probe.example.com, which does not resolve back to it',
    })
  })

  test('passes if one of several resolves back', async () => {
    const several = { ...GOOD, [PTR]: { PTR: ['gone.example.com', 'probe.example.com'] } }
    expect(await ptr(several)).toMatchObject({ state: 'ok' })
  })

  test('is a warning if the DNS lookup fails', async () => {
    expect(await ptr({ [PTR]: 'timeout' })).toMatchObject({ state: 'warn' })
    expect(await ptr({ ...GOOD, 'probe.example.com': 'server' })).toMatchObject({ state: 'warn' })
  })

  test.each([
    '192-0-2-9.isp.example',
    'static.9.2.0.192.clients.hoster.example',
    'host-192-000-002-009.isp.example',
    'c0000209.isp.example',
    'dyn.isp.example',
    'pool7.isp.example',
    'x.adsl.isp.example',
  ])('looks generic: %s', async name => {
    expect(await ptr({ [PTR]: { PTR: [name] }, [name]: { A: [IP] } }, name)).toMatchObject({
      state: 'warn',
      says: expect.stringContaining('looks generic'),
    })
  })

  test.each(['mx9.example.com', 'carpool.example.com', 'a192.0.example.com'])(
    'does not look generic: %s',
    async name => {
      expect(await ptr({ [PTR]: { PTR: [name] }, [name]: { A: [IP] } }, name)).toMatchObject({
        state: 'ok',
      })
    },
  )

  test('is looked up by nibbles for IPv6', async () => {
    const names = zone({
      '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa': {
        PTR: ['six.example.com'],
      },
      'six.example.com': { AAAA: ['2001:DB8:0::1'] },
    })
    expect(await reverseName(names, '2001:db8::1', 'six.example.com', SIGNAL)).toMatchObject({
      state: 'ok',
    })
  })
})
