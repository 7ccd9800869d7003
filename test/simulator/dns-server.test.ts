import { Resolver } from 'node:dns/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createEngine } from '../../src/index.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'

/** Longer than one string of a TXT record. */
const LONG = '12345678'.repeat(40)
let simulator: Simulator
let resolver: Resolver

beforeAll(async () => {
  const many = Array.from(
    { length: 60 },
    (_, at) => [at, `mx${at}.a-rather-long-name.many.test`] as const,
  )
  simulator = await startSimulator({
    domains: {
      'a.test': {
        mx: [
          [20, 'mx2.a.test'],
          [10, 'mx1.a.test'],
        ],
      },
      'bücher.test': { mx: [[10, 'mx1.a.test']] },
      'null.test': { mx: 'null' },
      'web.test': { mx: 'none', a: ['192.0.2.1'], aaaa: ['2001:db8::1'] },
      'bare.test': {},
      'fails.test': { fault: 'servfail' },
      'refuses.test': { fault: 'refused' },
      'gone.test': { fault: 'nxdomain' },
      'mute.test': { fault: 'silent' },
      'cut.test': { fault: 'truncated', mx: [[10, 'mx1.a.test']] },
      'many.test': { mx: many },
      'said.test': { txt: ['v=spf1 -all', LONG] },
      '9.0.0.127.in-addr.arpa': { ptr: 'self.test' },
    },
    hosts: {
      'mx1.a.test': { behavior: 'polite' },
      'mx2.a.test': { behavior: 'polite', ip: ['10.0.0.9', '2001:db8::9'] },
      'self.test': { behavior: 'polite' },
    },
  })
  resolver = new Resolver({ timeout: 2_000, tries: 1 })
  resolver.setServers([simulator.dnsAddress])
})
afterAll(() => simulator.close())

const codeOf = (asked: Promise<unknown>) => asked.then(String, error => error.code)

describe('the simulated DNS', () => {
  test('returns configured MX records', async () => {
    expect((await resolver.resolveMx('a.test')).map(mx => [mx.priority, mx.exchange])).toEqual([
      [20, 'mx2.a.test'],
      [10, 'mx1.a.test'],
    ])
  })

  test('includes the addresses of exchangers if the scenario says so', async () => {
    const domains = { 'a.test': { mx: [[10, 'mx.a.test']] as const } }
    const hosts = { 'mx.a.test': { behavior: 'polite' as const } }
    const simulator = await startSimulator({ domains, hosts, dnsAdditional: true })
    const engine = createEngine({
      dns: [simulator.dnsAddress],
      smtpPort: simulator.smtpPort,
      helo: 'probe.test',
      allowRanges: ['127.0.0.0/8'],
      specialDomains: true,
      sourceAddress: '127.0.0.1',
    })
    try {
      const { verdict } = await engine.verify('user1@a.test')
      expect(verdict.reason).toBe('accepted_email')
      expect(simulator.counters().dns.byType).toEqual({ MX: 1 })
    } finally {
      await engine.close()
      await simulator.close()
    }
  })

  test('finds a name of any script by its A-label, in any case', async () => {
    expect(await resolver.resolveMx('XN--bcher-kva.TEST')).toMatchObject([
      { exchange: 'mx1.a.test' },
    ])
  })

  test('returns configured and assigned addresses of hosts', async () => {
    expect(await resolver.resolve4('mx1.a.test')).toEqual(['127.20.0.1'])
    expect(await resolver.resolve4('mx2.a.test')).toEqual(['10.0.0.9'])
    expect(await resolver.resolve6('mx2.a.test')).toEqual(['2001:db8::9'])
    expect(await resolver.resolve4('self.test')).toEqual(simulator.addresses.get('self.test'))
  })

  test('returns the addresses of a domain', async () => {
    expect(await resolver.resolve4('web.test')).toEqual(['192.0.2.1'])
    expect(await resolver.resolve6('web.test')).toEqual(['2001:db8::1'])
  })

  test('returns TXT records, long ones as several strings, and PTR records', async () => {
    const texts = await resolver.resolveTxt('said.test')
    expect(texts.map(strings => strings.length)).toEqual([1, 2])
    expect(texts.map(strings => strings.join(''))).toEqual(['v=spf1 -all', LONG])
    expect(await resolver.reverse('127.0.0.9')).toEqual(['self.test'])
    expect(await codeOf(resolver.resolvePtr('self.test'))).toBe('ENODATA')
  })

  test('returns the null MX of RFC 7505', async () => {
    expect(await resolver.resolveMx('null.test')).toMatchObject([{ priority: 0, exchange: '' }])
  })

  test.each([
    ['nowhere.test', 'MX', 'ENOTFOUND'],
    ['gone.test', 'MX', 'ENOTFOUND'],
    ['web.test', 'MX', 'ENODATA'],
    ['bare.test', 'A', 'ENODATA'],
    ['mx1.a.test', 'AAAA', 'ENODATA'],
    ['test', 'A', 'ENODATA'], // a name below it exists
    ['fails.test', 'MX', 'ESERVFAIL'],
    ['refuses.test', 'MX', 'EREFUSED'],
  ])('%s %s: %s', async (name, type, code) => {
    expect(await codeOf(resolver.resolve(name, type))).toBe(code)
  })

  test('does not answer if configured so', async () => {
    const slowResolver = new Resolver({ timeout: 1, tries: 1 })
    slowResolver.setServers([simulator.dnsAddress])
    const before = simulator.counters().dns.questions.get('mute.test MX') ?? 0
    const asked = codeOf(slowResolver.resolveMx('mute.test'))
    while ((simulator.counters().dns.questions.get('mute.test MX') ?? 0) === before) {
      await new Promise(resolve => setImmediate(resolve))
    }
    slowResolver.cancel()
    expect(['ECANCELLED', 'ETIMEOUT']).toContain(await asked)
  })

  test('truncates over UDP what is too long, and sends it over TCP', async () => {
    expect(await resolver.resolveMx('many.test')).toHaveLength(60)
    expect(await resolver.resolveMx('cut.test')).toMatchObject([{ exchange: 'mx1.a.test' }])
  })

  test('counts queries by name and type', async () => {
    simulator.resetCounters()
    await resolver.resolveMx('a.test')
    await resolver.resolve4('mx1.a.test')
    await resolver.resolve4('mx1.a.test')
    expect(simulator.counters().dns).toEqual({
      total: 3,
      byType: { MX: 1, A: 2 },
      questions: new Map([
        ['a.test MX', 1],
        ['mx1.a.test A', 2],
      ]),
    })
  })
})
