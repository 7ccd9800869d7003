import { describe, expect, test } from 'vitest'
import { probeAll } from '../../../src/doctor/network/reference-hosts.ts'
import type { Dial } from '../../../src/engine/smtp/dial.ts'
import { fakeClock } from '../../support/clock.ts'
import { HANG_UP, type MxScript, refused, scriptedMx, silentDial } from '../../support/mx.ts'
import { zone } from '../../support/zone.ts'

const NAMES = {
  'both.test': { A: ['192.0.2.1', '192.0.2.2'], AAAA: ['2001:db8::1'] },
  'inside.test': { A: ['10.0.0.1'] },
  'slow.test': 'timeout' as const,
}

function begin(dial: Dial, hosts: readonly string[], sourceAddress: string | null = null) {
  const clock = fakeClock()
  const deps = { clock, dial, resolver: zone(NAMES), helo: 'probe.test', smtpPort: 25 }
  const isPublic = (ip: string) => !ip.startsWith('10.')
  const signal = new AbortController().signal
  const visits = probeAll({ ...deps, isPublic, sourceAddress }, hosts, signal)
  const results = () =>
    visits.then(all => all.map(({ host, ip, outcome }) => [host, ip, outcome.kind]))
  return { clock, visits, results }
}

describe('the handshakes', () => {
  test('dial one address of each family, and send only EHLO and QUIT', async () => {
    const mx = scriptedMx({})
    const { results } = begin(mx, ['both.test', '192.0.2.77'])
    expect(await results()).toEqual([
      ['both.test', '192.0.2.1', 'greeted'],
      ['both.test', '2001:db8::1', 'greeted'],
      ['192.0.2.77', '192.0.2.77', 'greeted'],
    ])
    for (const { lines } of mx.sessions) expect(lines).toEqual(['EHLO probe.test', 'QUIT'])
  })

  test('stay in the family of the source address', async () => {
    expect(
      (await begin(scriptedMx({}), ['both.test'], '192.0.2.9').results()).map(([, ip]) => ip),
    ).toEqual(['192.0.2.1'])
    expect(
      (await begin(scriptedMx({}), ['both.test'], '2001:db8::9').results()).map(([, ip]) => ip),
    ).toEqual(['2001:db8::1'])
  })

  test('dial neither private addresses nor unresolved names', async () => {
    const mx = scriptedMx({})
    const { results } = begin(mx, ['inside.test', 'slow.test', 'gone.test'])
    expect(await results()).toEqual([
      ['inside.test', '10.0.0.1', 'not-public'],
      ['slow.test', null, 'unresolved'],
      ['gone.test', null, 'unresolved'],
    ])
    expect(mx.dialled).toEqual([])
  })

  test.each<[string, MxScript, string]>([
    ['rejects the connection', { greeting: '554 5.7.1 blocked' }, 'refused'],
    [
      'rejects EHLO and HELO',
      { answer: line => (/^(EHLO|HELO)/.test(line) ? '550 no' : undefined) },
      'refused',
    ],
    ['closes the connection', { greeting: () => HANG_UP }, 'mute'],
    ['does not speak SMTP', { greeting: 'HTTP/1.1 400 Bad Request' }, 'mute'],
    [
      'is down',
      {
        connect: to => {
          throw refused(to)
        },
      },
      'unreached',
    ],
  ])('report a server that %s', async (_, script, kind) => {
    expect(await begin(scriptedMx(script), ['192.0.2.77']).results()).toEqual([
      ['192.0.2.77', '192.0.2.77', kind],
    ])
  })

  test('time out on a server that never greets', async () => {
    const { clock, results } = begin(scriptedMx({ greeting: null }), ['192.0.2.77'])
    await clock.advance(6_000)
    expect(await results()).toEqual([['192.0.2.77', '192.0.2.77', 'mute']])
  })

  test('time out on a dial that never completes', async () => {
    const { clock, visits } = begin(silentDial, ['192.0.2.77'])
    await clock.advance(4_000)
    expect((await visits)[0]?.outcome).toMatchObject({ kind: 'unreached', code: 'ETIMEDOUT' })
    expect(clock.pending).toBe(0)
  })
})
