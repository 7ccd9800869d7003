import { describe, expect, test } from 'vitest'
import type { Resolver } from '../../../src/engine/dns/resolver.ts'
import { createTestEngine } from '../../support/engine.ts'
import { isUnguessable, knows, toRecipients } from '../../support/recipients.ts'
import { remoteDial, remoteResolver } from '../../support/remote.ts'
import type { ZoneEntry } from '../../support/zone.ts'

const ROUND_TRIP_MS = 1_000

/** A house whose DNS and mail servers are a second away: what a verification takes are its round trips. */
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
  test('a cold one takes at most six, the DNS included', async () => {
    const { trips, reason } = await roundTrips(farHouse(), 'ann@a.test')
    expect(reason).toBe('accepted_email')
    expect(trips).toBe(6)
  })

  test('an unknown mailbox takes no more', async () => {
    const { trips, reason } = await roundTrips(farHouse(), 'nobody@a.test')
    expect(reason).toBe('rejected_email')
    expect(trips).toBe(6)
  })

  test('a domain that takes everything is found out without another one', async () => {
    const { trips, reason } = await roundTrips(farHouse({ script: {} }), 'ann@a.test')
    expect(reason).toBe('catch_all')
    expect(trips).toBe(6)
  })

  test('without PIPELINING each command has its own', async () => {
    const known = knows('ann')
    const script = {
      answer: (line: string, session: Parameters<typeof known>[1]) =>
        line.startsWith('EHLO') ? '250 mx.a.test' : known(line, session),
    }
    const { trips, reason } = await roundTrips(farHouse({ script }), 'ann@a.test')
    expect(reason).toBe('accepted_email')
    // MAIL, RCPT and the unguessable RCPT one by one.
    expect(trips).toBe(8)
  })

  test('the second address of a domain saves those of the DNS', async () => {
    const far = farHouse()
    await far.verify('ann@a.test')
    const { trips } = await roundTrips(far, 'bob@a.test')
    expect(trips).toBe(4)
  })

  /** The DNS sends the addresses of the exchanger along with the MX records. */
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

  test('addresses that come with the MX records save one', async () => {
    const far = createTestEngine({
      resolver: (zone, clock) => alongWithMx(remoteResolver(zone, clock, ROUND_TRIP_MS)),
      dial: (mx, clock) => remoteDial(mx, clock, ROUND_TRIP_MS),
      engine: { deadlineMs: 60_000 },
    })
    expect((await roundTrips(far, 'ann@a.test')).trips).toBe(5)
    expect(far.zone.asked).toEqual(['MX a.test'])
  })

  test('a domain whose exchanger was seen before has its address asked for with the MX', async () => {
    const far = farHouse()
    await far.verify('ann@a.test')
    // By then the cache of the DNS has forgotten both.
    await far.clock.advance(10 * 60_000)
    expect((await roundTrips(far, 'bob@a.test')).trips).toBe(5)
    expect(far.zone.asked.slice(3)).toEqual(['A mx.a.test', 'AAAA mx.a.test', 'MX a.test'])
  })

  test('an exchanger that moved is found by the MX records all the same', async () => {
    const far = farHouse()
    await far.verify('ann@a.test')
    await far.clock.advance(10 * 60_000)
    far.zone.set('a.test', { MX: [[10, 'new.a.test']] })
    far.zone.set('new.a.test', { A: ['192.0.2.9'] })
    expect((await roundTrips(far, 'bob@a.test')).trips).toBe(6)
    expect(far.mx.dialled.at(-1)?.ip).toBe('192.0.2.9')
  })

  test('a large provider has the address of its exchanger asked for at once', async () => {
    const zone = {
      'gmail.com': { MX: [[5, 'gmail-smtp-in.l.google.com']] },
      'gmail-smtp-in.l.google.com': { A: ['192.0.2.5'] },
    } as const
    const far = farHouse({ zone })
    expect((await roundTrips(far, 'ann.lee@gmail.com')).trips).toBe(5)
  })

  test('a remembered answer takes none', async () => {
    const far = farHouse()
    await far.verify('ann@a.test')
    expect((await far.verify('ann@a.test')).tookMs).toBe(0)
  })
})

describe('DNS questions of a single verification', () => {
  test('MX and the addresses of its exchanger', async () => {
    const { verify, zone } = createTestEngine()
    await verify('ann@a.test')
    expect(zone.asked).toEqual(['MX a.test', 'A mx.a.test', 'AAAA mx.a.test'])
  })

  test('a list looks no host up that it may not need', async () => {
    const { many, verify, clock, zone } = createTestEngine()
    await verify('ann@a.test')
    await clock.advance(10 * 60_000)
    zone.set('a.test', { MX: [[0, '.']] })
    await many(['bob@a.test'])
    expect(zone.asked.slice(3)).toEqual(['MX a.test'])
  })

  test('where nothing is known of the domain, or no mail server is asked, no host is guessed', async () => {
    const { verify, clock, zone } = createTestEngine()
    await verify('ann@a.test')
    await clock.advance(10 * 60_000)
    await verify('bob@a.test', { checkSmtp: false })
    expect(zone.asked.slice(3)).toEqual(['MX a.test'])
  })

  test.each<[string, (host: string, i: number) => ZoneEntry]>([
    ['none of which exists', () => 'no-name'],
    ['whose DNS is broken', () => 'server'],
    ['none of which has an address', () => ({})],
    ['none of which may be dialled', () => ({ A: ['10.0.0.1'] })],
    ['of many addresses each', (_, i) => ({ A: Array.from({ length: 50 }, (_, j) => ip(i, j)) })],
  ])('are at most eight with 200 exchangers %s', async (_, entryOf) => {
    const hosts = Array.from({ length: 200 }, (_, i) => `mx${i}.a.test`)
    const zone = {
      'a.test': { MX: hosts.map((host, i) => [i, host] as const) },
      ...Object.fromEntries(hosts.map((host, i) => [host, entryOf(host, i)])),
    }
    const greeting = '554 5.7.1 No'
    const { verify, zone: dns, mx } = createTestEngine({ zone, script: { greeting } })
    const { verdict } = await verify('ann@a.test')
    expect(verdict).toMatchObject({ valid: false, risk: 'unknown' })
    expect(dns.asked.length).toBeLessThanOrEqual(8)
    expect(mx.dialled.length).toBeLessThanOrEqual(5)
    expect(mx.sessions.length).toBeLessThanOrEqual(2)
  })

  test.each(['554 5.7.1 No', '421 4.3.2 Busy', null])(
    'and its connections are as few where the exchangers are of two operators: %s',
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
      // Where nobody is reached, hosts that all know are looked up too: is our own way out closed?
      const asked = dns.asked.filter(question => question.endsWith('.test'))
      expect(asked.length).toBeLessThanOrEqual(8)
      expect(mx.dialled.length).toBeLessThanOrEqual(5)
      expect(mx.sessions.length).toBeLessThanOrEqual(2)
      expect(new Set(mx.dialled.map(({ host }) => host.split('.')[1]))).toEqual(new Set(['b', 'c']))
    },
  )

  test('are not asked again for the other mailboxes of a domain', async () => {
    const { many, zone } = createTestEngine()
    await many(['ann@a.test', 'bob@a.test', 'zoe@A.TEST', 'info@a.test'])
    expect(zone.asked).toEqual(['MX a.test', 'A mx.a.test', 'AAAA mx.a.test'])
  })
})

describe('recipients of a single verification', () => {
  test('one real and one that nobody has, in one transaction', async () => {
    const { verify, recipients, mx } = createTestEngine()
    await verify('ann@a.test')
    expect(recipients()).toEqual(['ann@a.test', expect.toSatisfy(isUnguessable)])
    expect(mx.lines().filter(line => line.startsWith('MAIL'))).toHaveLength(1)
  })

  test('no second one that nobody has while the first is remembered', async () => {
    const { verify, recipients } = createTestEngine()
    await verify('ann@a.test')
    await verify('bob@a.test')
    expect(recipients().filter(isUnguessable)).toHaveLength(1)
  })

  test('none that nobody has at an operator that takes everything: it would tell nothing', async () => {
    const zone = { 'a.test': { MX: [[10, 'mta7.am0.yahoodns.net']] as const } }
    const entries = { ...zone, 'mta7.am0.yahoodns.net': { A: ['192.0.2.9'] } }
    const { verify, recipients } = createTestEngine({ script: {}, zone: entries })
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict.reason).toBe('catch_all')
    expect(evidence.operator?.name).toBe('yahoo')
    expect(recipients()).toEqual(['ann@a.test'])
  })

  test('none that nobody has at a free provider that tells', async () => {
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

  test('the unguessable one at a customer of such an operator', async () => {
    const zone = {
      'a.test': { MX: [[5, 'aspmx.l.google.com']] as const },
      'aspmx.l.google.com': { A: ['192.0.2.9'] },
    }
    const { verify, recipients } = createTestEngine({ zone, script: {} })
    expect((await verify('ann@a.test')).verdict.reason).toBe('catch_all')
    expect(recipients()).toEqual(['ann@a.test', expect.toSatisfy(isUnguessable)])
  })

  test.each([
    ['is refused for reasons of ours', '550 5.7.1 Your IP is on a block list'],
    ['is deferred', '451 4.3.0 Try later'],
    ['is one too many', '452 4.5.3 Too many recipients'],
  ])('a domain is undecided when the random one %s', async (_, reply) => {
    const script = toRecipients(to => (to.startsWith('ann@') ? '250 2.1.5 Ok' : reply))
    const { verify } = createTestEngine({ script })
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict.reason).toBe('low_deliverability')
    expect(evidence.catchAll).toBeNull()
  })
})

const ip = (i: number, j: number) => `192.0.2.${((i * 50 + j) % 250) + 1}`
