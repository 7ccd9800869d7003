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
  const world = { clock, dial, resolver: zone(NAMES), helo: 'probe.test', smtpPort: 25 }
  const isPublic = (ip: string) => !ip.startsWith('10.')
  const signal = new AbortController().signal
  const visits = probeAll({ ...world, isPublic, sourceAddress }, hosts, signal)
  const told = () =>
    visits.then(all => all.map(({ host, ip, outcome }) => [host, ip, outcome.kind]))
  return { clock, visits, told }
}

describe('a round of calls', () => {
  test('goes to one address of each family, and says EHLO and QUIT and nothing else', async () => {
    const mx = scriptedMx({})
    const { told } = begin(mx, ['both.test', '192.0.2.77'])
    expect(await told()).toEqual([
      ['both.test', '192.0.2.1', 'greeted'],
      ['both.test', '2001:db8::1', 'greeted'],
      ['192.0.2.77', '192.0.2.77', 'greeted'],
    ])
    for (const { lines } of mx.sessions) expect(lines).toEqual(['EHLO probe.test', 'QUIT'])
  })

  test('stays in the family of the source address', async () => {
    expect(
      (await begin(scriptedMx({}), ['both.test'], '192.0.2.9').told()).map(([, ip]) => ip),
    ).toEqual(['192.0.2.1'])
    expect(
      (await begin(scriptedMx({}), ['both.test'], '2001:db8::9').told()).map(([, ip]) => ip),
    ).toEqual(['2001:db8::1'])
  })

  test('dials no address that is not public, and none where the DNS knows none', async () => {
    const mx = scriptedMx({})
    const { told } = begin(mx, ['inside.test', 'slow.test', 'gone.test'])
    expect(await told()).toEqual([
      ['inside.test', '10.0.0.1', 'not-public'],
      ['slow.test', null, 'unresolved'],
      ['gone.test', null, 'unresolved'],
    ])
    expect(mx.dialled).toEqual([])
  })

  test.each<[string, MxScript, string]>([
    ['turns us away at the door', { greeting: '554 5.7.1 blocked' }, 'refused'],
    [
      'turns us away by name',
      { answer: line => (line.startsWith('EHLO') ? '550 no' : undefined) },
      'refused',
    ],
    ['hangs up', { greeting: () => HANG_UP }, 'mute'],
    ['speaks something else', { greeting: 'HTTP/1.1 400 Bad Request' }, 'mute'],
    [
      'is down',
      {
        connect: to => {
          throw refused(to)
        },
      },
      'unreached',
    ],
  ])('tells of a server that %s', async (_, script, kind) => {
    expect(await begin(scriptedMx(script), ['192.0.2.77']).told()).toEqual([
      ['192.0.2.77', '192.0.2.77', kind],
    ])
  })

  test('leaves a server that never greets, in time', async () => {
    const { clock, told } = begin(scriptedMx({ greeting: null }), ['192.0.2.77'])
    await clock.advance(6_000)
    expect(await told()).toEqual([['192.0.2.77', '192.0.2.77', 'mute']])
  })

  test('gives up a dial that nobody answers, as a timeout', async () => {
    const { clock, visits } = begin(silentDial, ['192.0.2.77'])
    await clock.advance(4_000)
    expect((await visits)[0]?.outcome).toMatchObject({ kind: 'unreached', code: 'ETIMEDOUT' })
    expect(clock.pending).toBe(0)
  })
})
