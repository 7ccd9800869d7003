import { describe, expect, test } from 'vitest'
import { dnsFindings } from '../../../src/doctor/network/dns.ts'
import type { Resolver } from '../../../src/engine/dns/resolver.ts'
import { type FakeClock, fakeClock } from '../../support/clock.ts'
import { countedRandom } from '../../support/random.ts'
import { type ZoneEntry, zone } from '../../support/zone.ts'

const NAMES = ['mx1.test', 'mx2.test']
const GOOD: Record<string, ZoneEntry> = {
  'mx1.test': { A: ['192.0.2.1'] },
  'gmail.com': { MX: [[10, 'mx.gmail.com']] },
  'mx2.test': { AAAA: ['2001:db8::2'] }, // no A record is a valid answer
}

function find(clock: FakeClock, resolvers: Resolver[], dnsCheckNames = ['gmail.com']) {
  const dnsServers = resolvers.map((resolver, i) => ({ name: `192.0.2.${53 + i}`, resolver }))
  const signal = new AbortController().signal
  return dnsFindings({ dnsServers, dnsCheckNames, clock, random: countedRandom() }, NAMES, signal)
}
const findIn = (...zones: Record<string, ZoneEntry>[]) =>
  find(
    fakeClock(),
    zones.map(names => zone(names)),
  )

const DEAD: Record<string, ZoneEntry> = {
  'gmail.com': 'timeout',
  'mx1.test': 'timeout',
  'mx2.test': 'timeout',
  '00000000000000000001.com': 'timeout',
  '00000000000000000002.com': 'timeout',
}

describe('a DNS server', () => {
  test('passes if it answers and reports unknown names', async () => {
    expect(await findIn(GOOD)).toEqual([
      {
        state: 'ok',
        says: '192.0.2.53 answered 4 of 4 queries, median 0 ms',
        todo: null,
      },
    ])
  })

  test('is wrong if it returns an address for an unknown name', async () => {
    const [finding] = await findIn({ ...GOOD, '00000000000000000001.com': { A: ['192.0.2.80'] } })
    expect(finding).toMatchObject({
      state: 'fail',
      says: '192.0.2.53 returns wrong answers: the DNS server returns an address for a name that does not exist, so its answers are not trusted',
    })
  })

  test.each([
    ['no-name', 'does not exist'],
    ['no-data', 'accepts no mail'],
  ] as const)('fails if it denies a known name (%s)', async (fault, denied) => {
    const [finding] = await findIn({ ...GOOD, 'gmail.com': fault })
    expect(finding).toMatchObject({
      state: 'fail',
      says: expect.stringContaining(`the DNS server says that gmail.com ${denied}`),
      todo: expect.stringContaining('--dns-check-names'),
    })
  })

  test('is only a warning for invented answers if no check names are set', async () => {
    const lying = zone({ ...GOOD, '00000000000000000001.com': { A: ['192.0.2.80'] } })
    const [finding] = await find(fakeClock(), [lying], [])
    expect(finding).toMatchObject({ state: 'warn' })
    const { 'gmail.com': _, ...others } = GOOD
    expect(await find(fakeClock(), [zone(others)], [])).toMatchObject([{ state: 'ok' }])
  })

  test('is a warning if some queries fail', async () => {
    const [finding] = await findIn({ ...GOOD, 'mx1.test': 'server' })
    expect(finding).toMatchObject({
      state: 'warn',
      says: '192.0.2.53 answered 3 of 4 queries; queries fail or are refused',
    })
  })

  test('fails if it is the only one and does not respond, else is a warning', async () => {
    expect(await findIn(DEAD)).toMatchObject([
      { state: 'fail', says: '192.0.2.53 does not resolve names: queries time out' },
    ])
    expect((await findIn(DEAD, GOOD)).map(({ state }) => state)).toEqual(['warn', 'ok'])
  })

  test('is a warning if it is slow', async () => {
    const clock = fakeClock()
    const names = zone(GOOD)
    const slow: Resolver = {
      async resolve(name, type, signal) {
        await new Promise<void>(resolve => void clock.after(600, resolve))
        return names.resolve(name, type, signal)
      },
    }
    const findings = find(clock, [slow])
    await clock.runAll()
    expect(await findings).toMatchObject([
      { state: 'warn', says: expect.stringContaining('median 600 ms') },
    ])
  })
})
