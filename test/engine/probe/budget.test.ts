import { describe, expect, test } from 'vitest'
import type { Resolver } from '../../../src/engine/dns/resolver.ts'
import { createTestEngine } from '../../support/engine.ts'
import { isRandomRecipient, knows, toRecipients } from '../../support/recipients.ts'
import { remoteDial, remoteResolver } from '../../support/remote.ts'
import type { ZoneEntry } from '../../support/zone.ts'

const ROUND_TRIP_MS = 1_000

/** DNS and mail servers with a round trip of one second: the duration counts the round trips. */
const farHouse = (options: Parameters<typeof createTestEngine>[0] = {}) =>
  createTestEngine({
    ...options,
    resolver: (zone, clock) => remoteResolver(zone, clock, ROUND_TRIP_MS),
    dial: (mx, clock) => remoteDial(mx, clock, ROUND_TRIP_MS),
    engine: { deadlineMs: 60_000, ...options.engine },
  })

async function roundTrips(services: ReturnType<typeof farHouse>, address: string) {
  const { tookMs, verdict } = await services.verify(address)
  return { trips: tookMs / ROUND_TRIP_MS, reason: verdict.reason }
}

describe('round trips of a single verification', () => {
  // MX; address; handshake; greeting; EHLO; MAIL and the recipients in one write.
  test('a cold one takes at most six, including the DNS', async () => {
    const { trips, reason } = await roundTrips(farHouse(), 'ann@a.test')
    expect(reason).toBe('accepted_email')
    expect(trips).toBe(6)
  })

  test('an unknown mailbox takes no more', async () => {
    const { trips, reason } = await roundTrips(farHouse(), 'nobody@a.test')
    expect(reason).toBe('rejected_email')
    expect(trips).toBe(6)
  })

  test('a catch-all is detected without an extra one', async () => {
    const { trips, reason } = await roundTrips(farHouse({ script: {} }), 'ann@a.test')
    expect(reason).toBe('catch_all')
    expect(trips).toBe(6)
  })

  test('without PIPELINING each command takes one', async () => {
    const known = knows('ann')
    const script = {
      answer: (line: string, session: Parameters<typeof known>[1]) =>
        line.startsWith('EHLO') ? '250 mx.a.test' : known(line, session),
    }
    const { trips, reason } = await roundTrips(farHouse({ script }), 'ann@a.test')
    expect(reason).toBe('accepted_email')
    // MAIL, RCPT and the random RCPT one by one.
    expect(trips).toBe(8)
  })

  test('the second address of a domain saves those of the DNS', async () => {
    const far = farHouse()
    await far.verify('ann@a.test')
    const { trips } = await roundTrips(far, 'bob@a.test')
    expect(trips).toBe(4)
  })

  /** The DNS includes the addresses of the host in the MX response. */
  const alongWithMx = (resolver: Resolver): Resolver => ({
    async resolve(name, type, signal) {
      const answer = await resolver.resolve(name, type, signal)
      if (type !== 'MX' || 'fault' in answer) return answer
      const additional = [
        { host: 'mx.a.test', type: 'A' as const, addresses: ['192.0.2.1'] },
        { host: 'mx.a.test', type: 'AAAA' as const, addresses: ['2001:db8::1'] },
      ]
      return { ...answer, additional }
    },
  })

  test('addresses in the MX response save one', async () => {
    const far = createTestEngine({
      resolver: (zone, clock) => alongWithMx(remoteResolver(zone, clock, ROUND_TRIP_MS)),
      dial: (mx, clock) => remoteDial(mx, clock, ROUND_TRIP_MS),
      engine: { deadlineMs: 60_000 },
    })
    expect((await roundTrips(far, 'ann@a.test')).trips).toBe(5)
    expect(far.zone.asked).toEqual(['MX a.test'])
  })

  test('a known MX host is looked up in parallel with the MX records', async () => {
    const far = farHouse()
    await far.verify('ann@a.test')
    // Both DNS cache entries have expired by then.
    await far.clock.advance(10 * 60_000)
    expect((await roundTrips(far, 'bob@a.test')).trips).toBe(5)
    expect(far.zone.asked.slice(3)).toEqual(['A mx.a.test', 'AAAA mx.a.test', 'MX a.test'])
  })

  test('a changed MX host is found through the MX records', async () => {
    const far = farHouse()
    await far.verify('ann@a.test')
    await far.clock.advance(10 * 60_000)
    far.zone.set('a.test', { MX: [[10, 'new.a.test']] })
    far.zone.set('new.a.test', { A: ['192.0.2.9'] })
    expect((await roundTrips(far, 'bob@a.test')).trips).toBe(6)
    expect(far.mx.dialled.at(-1)?.ip).toBe('192.0.2.9')
  })

  test('the MX host of a large provider is looked up at once', async () => {
    const zone = {
      'gmail.com': { MX: [[5, 'gmail-smtp-in.l.google.com']] },
      'gmail-smtp-in.l.google.com': { A: ['192.0.2.5'] },
    } as const
    const far = farHouse({ zone })
    expect((await roundTrips(far, 'ann.lee@gmail.com')).trips).toBe(5)
  })

  test('a cached answer takes none', async () => {
    const far = farHouse()
    await far.verify('ann@a.test')
    expect((await far.verify('ann@a.test')).tookMs).toBe(0)
  })
})

describe('DNS queries of a single verification', () => {
  test('MX and the addresses of its host', async () => {
    const { verify, zone } = createTestEngine()
    await verify('ann@a.test')
    expect(zone.asked).toEqual(['MX a.test', 'A mx.a.test', 'AAAA mx.a.test'])
  })

  test('a list looks up no host in advance', async () => {
    const { many, verify, clock, zone } = createTestEngine()
    await verify('ann@a.test')
    await clock.advance(10 * 60_000)
    zone.set('a.test', { MX: [[0, '.']] })
    await many(['bob@a.test'])
    expect(zone.asked.slice(3)).toEqual(['MX a.test'])
  })

  test('no host is predicted for an unknown domain or without an SMTP check', async () => {
    const { verify, clock, zone } = createTestEngine()
    await verify('ann@a.test')
    await clock.advance(10 * 60_000)
    await verify('bob@a.test', { checkSmtp: false })
    expect(zone.asked.slice(3)).toEqual(['MX a.test'])
  })

  test.each<[string, number, (host: string, i: number) => ZoneEntry]>([
    // Ten hosts without an address do not count toward the limit of hosts.
    ['none of which exists', 21, () => 'no-name'],
    ['whose DNS is broken', 8, () => 'server'],
    ['none of which has an address', 21, () => ({})],
    ['none of which may be dialled', 8, () => ({ A: ['10.0.0.1'] })],
    [
      'of many addresses each',
      8,
      (_, i) => ({ A: Array.from({ length: 50 }, (_, j) => ip(i, j)) }),
    ],
  ])('with 200 MX hosts %s are at most %i', async (_, queriesMax, entryOf) => {
    const hosts = Array.from({ length: 200 }, (_, i) => `mx${i}.a.test`)
    const zone = {
      'a.test': { MX: hosts.map((host, i) => [i, host] as const) },
      ...Object.fromEntries(hosts.map((host, i) => [host, entryOf(host, i)])),
    }
    const greeting = '554 5.7.1 No'
    const { verify, zone: dns, mx } = createTestEngine({ zone, script: { greeting } })
    const { verdict } = await verify('ann@a.test')
    expect(verdict).toMatchObject({ valid: false, risk: 'unknown' })
    expect(dns.asked.length).toBeLessThanOrEqual(queriesMax)
    expect(mx.dialled.length).toBeLessThanOrEqual(5)
    expect(mx.sessions.length).toBeLessThanOrEqual(2)
  })

  test.each(['554 5.7.1 No', '421 4.3.2 Busy', null])(
    'and its connections have the same limit for hosts of two operators: %s',
    async greeting => {
      const hosts = Array.from({ length: 20 }, (_, i) => `mx${i}.${i % 2 === 0 ? 'b' : 'c'}.test`)
      const zone = {
        'a.test': { MX: hosts.map((host, i) => [i, host] as const) },
        ...Object.fromEntries(
          hosts.map((host, i) => [host, { A: [ip(i, 1), ip(i, 2), ip(i, 3), ip(i, 4)] }]),
        ),
      }
      const connect = () => {
        throw new Error('refused')
      }
      const {
        verify,
        zone: dns,
        mx,
      } = createTestEngine({
        zone,
        script: greeting === null ? { connect } : { greeting },
      })
      expect((await verify('ann@a.test')).verdict).toMatchObject({ risk: 'unknown' })
      // Without a connection, the reference hosts are looked up too, to check the outbound port.
      const asked = dns.asked.filter(question => question.endsWith('.test'))
      expect(asked.length).toBeLessThanOrEqual(8)
      expect(mx.dialled.length).toBeLessThanOrEqual(5)
      expect(mx.sessions.length).toBeLessThanOrEqual(2)
      expect(new Set(mx.dialled.map(({ host }) => host.split('.')[1]))).toEqual(new Set(['b', 'c']))
    },
  )

  test('are not repeated for other mailboxes of a domain', async () => {
    const { many, zone } = createTestEngine()
    await many(['ann@a.test', 'bob@a.test', 'zoe@A.TEST', 'info@a.test'])
    expect(zone.asked).toEqual(['MX a.test', 'A mx.a.test', 'AAAA mx.a.test'])
  })
})

describe('recipients of a single verification', () => {
  test('one real and one random, in one transaction', async () => {
    const { verify, recipients, mx } = createTestEngine()
    await verify('ann@a.test')
    expect(recipients()).toEqual(['ann@a.test', expect.toSatisfy(isRandomRecipient)])
    expect(mx.lines().filter(line => line.startsWith('MAIL'))).toHaveLength(1)
  })

  test('no second random one while the result of the first is cached', async () => {
    const { verify, recipients } = createTestEngine()
    await verify('ann@a.test')
    await verify('bob@a.test')
    expect(recipients().filter(isRandomRecipient)).toHaveLength(1)
  })

  test('no random one at an operator that accepts everything', async () => {
    const zone = { 'a.test': { MX: [[10, 'mta7.am0.yahoodns.net']] as const } }
    const entries = { ...zone, 'mta7.am0.yahoodns.net': { A: ['192.0.2.9'] } }
    const { verify, recipients } = createTestEngine({ script: {}, zone: entries })
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict.reason).toBe('catch_all')
    expect(evidence.operator?.name).toBe('yahoo')
    expect(recipients()).toEqual(['ann@a.test'])
  })

  test('no random one at a freemail provider that answers truthfully', async () => {
    const zone = {
      'gmail.com': { MX: [[5, 'gmail-smtp-in.l.google.com']] as const },
      'gmail-smtp-in.l.google.com': { A: ['192.0.2.9'] },
    }
    const { verify, recipients } = createTestEngine({ zone })
    const { verdict, evidence } = await verify('ann@gmail.com')
    expect(verdict.reason).toBe('accepted_email')
    expect(evidence.catchAll).toBe(false)
    expect(recipients()).toEqual(['ann@gmail.com'])
  })

  test('a random one for the domain of a customer of such an operator', async () => {
    const zone = {
      'a.test': { MX: [[5, 'aspmx.l.google.com']] as const },
      'aspmx.l.google.com': { A: ['192.0.2.9'] },
    }
    const { verify, recipients } = createTestEngine({ zone, script: {} })
    expect((await verify('ann@a.test')).verdict.reason).toBe('catch_all')
    expect(recipients()).toEqual(['ann@a.test', expect.toSatisfy(isRandomRecipient)])
  })

  test.each([
    ['is refused for reasons of ours', '550 5.7.1 Your IP is on a block list'],
    ['is deferred', '451 4.3.0 Try later'],
    ['is one too many', '452 4.5.3 Too many recipients'],
  ])('a domain is undecided if the random one %s', async (_, reply) => {
    const script = toRecipients(to => (to.startsWith('ann@') ? '250 2.1.5 Ok' : reply))
    const { verify } = createTestEngine({ script })
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict.reason).toBe('low_deliverability')
    expect(evidence.catchAll).toBeNull()
  })
})

const ip = (i: number, j: number) => `192.0.2.${((i * 50 + j) % 250) + 1}`
