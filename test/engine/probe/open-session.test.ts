import { describe, expect, test } from 'vitest'
import { cachedResolver } from '../../../src/engine/dns/cached-resolver.ts'
import type { Resolver } from '../../../src/engine/dns/resolver.ts'
import type { Target } from '../../../src/engine/smtp/dial.ts'
import { withResolvers } from '../../../src/platform/es2024.ts'
import { HANG_UP, type MxSays, type MxScript, refused } from '../../support/mx.ts'
import { ask, createTestProber, LIMITS, nameOf } from '../../support/prober.ts'
import type { ZoneEntry } from '../../support/zone.ts'

const EMAIL = 'ann@a.test'
const HOSTS = ['mx1.test', 'mx2.test', 'mx3.test', 'mx4.test']
/** Four hosts, mx1 to mx4, the n-th with one address: 192.0.2.n. */
const ZONE: Record<string, ZoneEntry> = Object.fromEntries(
  HOSTS.map((host, i) => [host, { A: [`192.0.2.${i + 1}`] }]),
)

/** Verifies one address whose domain has these hosts. */
async function verify(
  script: MxScript,
  {
    hosts = HOSTS,
    zone = ZONE,
    ...how
  }: { hosts?: string[]; zone?: Record<string, ZoneEntry> } & Parameters<
    typeof createTestProber
  >[1] = {},
) {
  const home = createTestProber(script, { zone, ...how })
  const walk = await home.single(ask(EMAIL, hosts))
  return { ...home, probed: walk.only(), dialled: home.mx.dialled.map(({ ip }) => ip) }
}

/** Withholds the answer to AAAA of one host until `answer` is called. */
function slowAaaa(host: string) {
  const { promise, resolve: answer } = withResolvers<void>()
  const wrap = (inner: Resolver): Resolver => ({
    async resolve(name, type, signal) {
      if (type === 'AAAA' && name === host) await promise
      return inner.resolve(name, type, signal)
    },
  })
  return { answer, wrap }
}

const noRoute = ({ ip, port }: Target) =>
  Object.assign(new Error(`connect ENETUNREACH ${ip}:${port}`), { code: 'ENETUNREACH' })

const onlyAt =
  (...ips: string[]): NonNullable<MxScript['connect']> =>
  to => {
    if (!ips.includes(to.ip)) throw refused(to)
  }

describe('the dial order', () => {
  test('follows the preference and ends at the first host that accepts the session', async () => {
    const { dialled, probed } = await verify({})
    expect(dialled).toEqual(['192.0.2.1'])
    expect(probed).toMatchObject({ host: 'mx1.test', ip: '192.0.2.1', asked: true, tls: false })
    expect(nameOf(probed)).toBe('accepted/recipient')
  })

  test('tries all addresses of a host before the next host, IPv4 first', async () => {
    const zone = {
      'mx1.test': { A: ['192.0.2.1', '192.0.2.2'], AAAA: ['2001:db8::1'] },
      'mx2.test': { A: ['192.0.2.3'] },
    }
    const { dialled, probed } = await verify(
      { connect: onlyAt('192.0.2.3') },
      { zone, hosts: ['mx1.test', 'mx2.test'] },
    )
    expect(dialled).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1', '192.0.2.3'])
    expect(probed).toMatchObject({ host: 'mx2.test', ip: '192.0.2.3' })
  })

  test('trusts that a host accepts no mail only if no other host is left', async () => {
    const hosts = ['mx1.test', 'mx2.test']
    const noMail = { greeting: '521 mx.test' }
    expect(nameOf((await verify(noMail, { hosts })).probed)).toBe('rejected/no-mail')
    const oneIsDown = { ...noMail, connect: onlyAt('192.0.2.1') }
    expect(nameOf((await verify(oneIsDown, { hosts })).probed)).toBe('no-response/connect')
  })

  test('does not wait for AAAA if a host accepts the session over IPv4', async () => {
    const zone: Record<string, ZoneEntry> = { 'mx1.test': { A: ['192.0.2.1'], AAAA: 'never' } }
    const home = createTestProber({}, { zone })
    const walk = home.begin([ask(EMAIL, ['mx1.test'])], { single: true })
    await home.clock.advance(0)
    expect(walk.only()).toMatchObject({ ip: '192.0.2.1', answer: { kind: 'accepted' } })
    await walk.end()
  })

  test('tries the IPv6 addresses that arrive late after all other hosts', async () => {
    const late = slowAaaa('mx1.test')
    const { zone, clock } = createTestProber({}, {})
    zone.set('mx1.test', { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] })
    zone.set('mx2.test', { A: ['192.0.2.2'] })
    const resolver = cachedResolver(late.wrap(zone), { clock })
    const home = createTestProber({ connect: onlyAt('2001:db8::1') }, { world: { resolver } })
    const walk = home.begin([ask(EMAIL, ['mx1.test', 'mx2.test'])], { single: true })
    await home.clock.advance(0)
    expect(home.mx.dialled.map(({ ip }) => ip)).toEqual(['192.0.2.1', '192.0.2.2'])
    late.answer()
    expect((await walk.end()).only()).toMatchObject({ ip: '2001:db8::1' })
  })

  test('continues after a refused connection', async () => {
    const { dialled, probed } = await verify({ connect: onlyAt('192.0.2.2') })
    expect(dialled).toEqual(['192.0.2.1', '192.0.2.2'])
    expect(nameOf(probed)).toBe('accepted/recipient')
  })

  test.each([
    ['5xx', '554 5.7.1 not you'],
    ['4xx', '450 4.3.2 not now'],
    ['421', '421 4.3.2 not now'],
    ['2xx that is not 220', '250 hello'],
    ['no SMTP at all', 'SSH-2.0-x'],
    ['a hang-up', HANG_UP],
  ] as [string, MxSays][])('continues after a greeting that is %s', async (_, said) => {
    const { dialled, probed } = await verify({
      greeting: ({ to }) => (to.ip === '192.0.2.1' ? said : undefined),
    })
    expect(dialled).toEqual(['192.0.2.1', '192.0.2.2'])
    expect(nameOf(probed)).toBe('accepted/recipient')
  })

  test('continues after a refused EHLO', async () => {
    const { dialled } = await verify({
      answer: (line, { to }) =>
        /^(?:EHLO|HELO)/.test(line) && to.ip === '192.0.2.1' ? '550 5.7.1 no' : undefined,
    })
    expect(dialled).toEqual(['192.0.2.1', '192.0.2.2'])
  })

  test('continues after the greeting timeout of a host', async () => {
    const { dialled, probed, clock } = await verify({
      greeting: ({ to }) => (to.ip === '192.0.2.1' ? null : undefined),
    })
    expect(dialled).toEqual(['192.0.2.1', '192.0.2.2'])
    expect(nameOf(probed)).toBe('accepted/recipient')
    expect(clock.pending).toBe(0)
  })

  test('closes a connection before it dials the next host', async () => {
    const closed: boolean[][] = []
    const home = createTestProber(
      {
        greeting: '554 5.7.1 no',
        connect: () => {
          closed.push(home.mx.sessions.map(session => session.closed))
        },
      },
      { zone: ZONE },
    )
    await home.single(ask(EMAIL, HOSTS))
    expect(closed).toEqual([[], [true]])
    expect(home.mx.lines()).toEqual(['QUIT', 'QUIT'])
  })

  test('dials the domain itself for an implicit route', async () => {
    const home = createTestProber({}, { zone: { 'a.test': { A: ['192.0.2.9'] } } })
    const question = ask(EMAIL)
    const [hosts] = question.exchangers
    const route = { kind: 'implicit', host: 'a.test' } as const
    await home.single({ ...question, exchangers: [{ ...hosts, route }] })
    expect(home.mx.dialled).toEqual([{ ip: '192.0.2.9', port: 25, host: 'a.test' }])
  })
})

describe('dial limits', () => {
  test('at most two sessions are opened', async () => {
    const { dialled, probed } = await verify({ greeting: '554 5.7.1 no' })
    expect(dialled).toEqual(['192.0.2.1', '192.0.2.2'])
    expect(nameOf(probed)).toBe('blocked/policy')
  })

  // A machine without IPv4, or a broken one: the error comes at once, and nothing is sent.
  test('addresses without a route from here do not count', async () => {
    const ipv4 = Array.from({ length: 6 }, (_, i) => `192.0.2.${i + 1}`)
    const { dialled, probed } = await verify(
      {
        connect: to => {
          if (!to.ip.includes(':')) throw noRoute(to)
        },
      },
      { zone: { 'mx1.test': { A: ipv4, AAAA: ['2001:db8::1'] } }, hosts: ['mx1.test'] },
    )
    expect(dialled).toEqual([...ipv4.slice(0, 5), '2001:db8::1'])
    expect(nameOf(probed)).toBe('accepted/recipient')
  })

  test('at most five addresses are dialed', async () => {
    const zone = {
      'mx1.test': { A: ['192.0.2.1', '192.0.2.2', '192.0.2.3'] },
      'mx2.test': { A: ['192.0.2.4', '192.0.2.5', '192.0.2.6'] },
    }
    const { dialled, probed } = await verify(
      { connect: onlyAt() },
      { zone, hosts: ['mx1.test', 'mx2.test'] },
    )
    expect(dialled).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5'])
    expect(probed.answer).toMatchObject({ kind: 'no-response', why: 'connect', stage: 'connect' })
  })

  test('at most three hosts are looked up', async () => {
    const { zone: names, dialled } = await verify({ connect: onlyAt('192.0.2.4') })
    expect(names.asked.map(question => question.split(' ')[1])).not.toContain('mx4.test')
    expect(dialled).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3'])
  })

  test('hosts without an address do not count', async () => {
    const hosts = ['a.test', 'b.test', 'c.test', 'd.test', ...HOSTS]
    const zone = { ...ZONE, 'b.test': {}, 'd.test': {} }
    const { dialled } = await verify({ connect: onlyAt('192.0.2.4') }, { zone, hosts })
    expect(dialled).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3'])
    const { probed } = await verify({}, { zone, hosts })
    expect(probed).toMatchObject({ host: 'mx1.test', answer: { kind: 'accepted' } })
  })

  test('hosts whose lookup failed count', async () => {
    const zone: Record<string, ZoneEntry> = { ...ZONE, 'mx1.test': 'server', 'mx2.test': 'timeout' }
    const { dialled } = await verify({ connect: onlyAt('192.0.2.4') }, { zone })
    expect(dialled).toEqual(['192.0.2.3'])
  })

  test('each dial has a timeout', async () => {
    const home = createTestProber({}, { zone: ZONE })
    const startedAt: number[] = []
    const dial = {
      ...home.world.egress.dial,
      connect: (_: unknown, signal: AbortSignal) =>
        new Promise<never>((_, reject) => {
          startedAt.push(home.clock.monotonicNow())
          signal.addEventListener('abort', () => reject(new Error('given up')))
        }),
    }
    const other = createTestProber(
      {},
      { zone: ZONE, world: { egress: { ...home.world.egress, dial }, clock: home.clock } },
    )
    const walk = other.begin([ask(EMAIL, ['mx1.test', 'mx2.test'])], { single: true })
    await home.clock.advance(2 * LIMITS.connectMs)
    await home.clock.advance(0)
    expect(walk.finished).toBe(true)
    // The first one leaves time for the second.
    expect((startedAt[1] ?? 0) - (startedAt[0] ?? 0)).toBe(LIMITS.connectMs / 2)
    expect(walk.only().answer).toMatchObject({ kind: 'no-response', why: 'connect' })
    expect(walk.only().answer).toMatchObject({
      detail: `no answer within ${LIMITS.connectMs / 2_000} s`,
    })
  })
})

describe('without a session', () => {
  test('a missing address is certain only if every host was looked up', async () => {
    const hosts = Array.from({ length: 11 }, (_, n) => `gone${n}.test`)
    const ten = await verify({}, { hosts: hosts.slice(1) })
    expect(nameOf(ten.probed)).toBe('no-response/no-address')
    const eleven = await verify({}, { hosts })
    expect(nameOf(eleven.probed)).toBe('no-response/connect')
    expect(eleven.zone.asked).toHaveLength(2 * 10)
    expect(eleven.dialled).toEqual([])
  })

  test.each([
    ['server', 'no-response/dns'],
    ['timeout', 'no-response/dns'],
    ['no-name', 'no-response/no-address'],
    ['no-data', 'no-response/no-address'],
  ] as const)('a DNS failure (%s) is reported as %s', async (fault, name) => {
    const { probed } = await verify({}, { zone: { 'mx1.test': fault }, hosts: ['mx1.test'] })
    expect(nameOf(probed)).toBe(name)
    expect(probed.host).toBe('mx1.test')
  })

  test('a failed lookup of one host leaves the result open', async () => {
    const { probed } = await verify(
      {},
      { zone: { 'mx2.test': 'server' }, hosts: HOSTS.slice(0, 3) },
    )
    expect(nameOf(probed)).toBe('no-response/dns')
  })

  test('a reply of a server ranks above the silence of others', async () => {
    const { probed } = await verify({
      connect: onlyAt('192.0.2.2'),
      greeting: '554 5.7.1 you are listed',
    })
    expect(probed).toMatchObject({ host: 'mx2.test', answer: { kind: 'blocked' } })
  })

  test('the first of two replies is reported', async () => {
    const { probed } = await verify({
      greeting: ({ to }) =>
        to.ip === '192.0.2.1' ? '554 5.7.1 you are listed' : '450 4.3.2 not now',
    })
    expect(probed).toMatchObject({ host: 'mx1.test', answer: { kind: 'blocked' } })
  })

  test('a forbidden address ranks above a missing one', async () => {
    const { probed } = await verify(
      {},
      {
        zone: { 'mx2.test': { A: ['10.0.0.1'] } },
        hosts: ['mx1.test', 'mx2.test'],
        world: { isPublic: () => false },
      },
    )
    expect(probed).toMatchObject({
      host: 'mx2.test',
      answer: { kind: 'no-response', why: 'not-public' },
    })
  })

  test('a broken session ranks above a refused connection', async () => {
    const { probed } = await verify({ connect: onlyAt('192.0.2.1'), greeting: () => HANG_UP })
    expect(probed).toMatchObject({
      host: 'mx1.test',
      answer: { kind: 'no-response', why: 'closed' },
    })
  })
})

describe('an address that is not public', () => {
  const isPublic = (ip: string) => !ip.startsWith('10.')

  test('is never dialed', async () => {
    const zone = { 'mx1.test': { A: ['10.0.0.1', '10.0.0.2'] } }
    const { dialled, probed } = await verify({}, { zone, hosts: ['mx1.test'], world: { isPublic } })
    expect(dialled).toEqual([])
    expect(nameOf(probed)).toBe('no-response/not-public')
  })

  test('is skipped in favor of a public one', async () => {
    const zone = { 'mx1.test': { A: ['10.0.0.1', '192.0.2.1'] } }
    const { dialled } = await verify({}, { zone, hosts: ['mx1.test'], world: { isPublic } })
    expect(dialled).toEqual(['192.0.2.1'])
  })

  test('does not count toward the dial limit', async () => {
    const zone = {
      'mx1.test': { A: ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5'] },
      'mx2.test': { A: ['192.0.2.1'] },
    }
    const { dialled } = await verify(
      {},
      { zone, hosts: ['mx1.test', 'mx2.test'], world: { isPublic } },
    )
    expect(dialled).toEqual(['192.0.2.1'])
  })
})

describe('TLS', () => {
  const offers: NonNullable<MxScript['answer']> = (line, { lines }) => {
    if (line === 'STARTTLS') return '220 go on'
    // STARTTLS is not offered again after it succeeded.
    if (line.startsWith('EHLO'))
      return lines.includes('STARTTLS') ? '250 mx.test' : '250-mx.test\n250 STARTTLS'
    return undefined
  }
  const always = { world: { startTls: 'always' } } as const
  const broken = () => {
    throw new Error('handshake failure')
  }

  test('with policy always starts and EHLO is sent again', async () => {
    const { mx, probed } = await verify({ answer: offers }, always)
    expect(mx.secured).toEqual(['mx1.test'])
    expect(mx.lines().slice(0, 4)).toEqual([
      'EHLO probe.test',
      'STARTTLS',
      'EHLO probe.test',
      'MAIL FROM:<>',
    ])
    expect(probed.tls).toBe(true)
  })

  test.each(['demanded', 'never'] as const)(
    'with policy %s is not started without a demand',
    async startTls => {
      const { mx, probed } = await verify({ answer: offers }, { world: { startTls } })
      expect(mx.secured).toEqual([])
      expect(probed.tls).toBe(false)
    },
  )

  test('with policy always is skipped if the server does not offer it', async () => {
    const { probed } = await verify({}, always)
    expect(nameOf(probed)).toBe('accepted/recipient')
    expect(probed.tls).toBe(false)
  })

  test('with policy always is skipped if the server refuses it temporarily', async () => {
    const { mx, probed } = await verify(
      { answer: (line, session) => (line === 'STARTTLS' ? '454 4.7.0 no' : offers(line, session)) },
      always,
    )
    expect(nameOf(probed)).toBe('accepted/recipient')
    expect(mx.lines().slice(0, 3)).toEqual(['EHLO probe.test', 'STARTTLS', 'MAIL FROM:<>'])
    expect(mx.dialled).toHaveLength(1)
  })

  test.each([true, false])(
    'that fails but is not required is skipped on the retry: single %s',
    async single => {
      const home = createTestProber({ answer: offers, secure: broken }, { ...always, zone: ZONE })
      const walk = await home.begin([ask(EMAIL, ['mx1.test'])], { single }).end()
      expect(nameOf(walk.only())).toBe('accepted/recipient')
      expect(walk.only().tls).toBe(false)
      expect(home.mx.dialled).toHaveLength(2)
      // The failure is cached: the next session does not try.
      await home.begin([ask('bob@a.test', ['mx1.test'])], { single }).end()
      expect(home.mx.dialled).toHaveLength(3)
      expect(home.mx.lines().filter(line => line === 'STARTTLS')).toHaveLength(1)
    },
  )

  test('that stalls is skipped on the retry', async () => {
    const home = createTestProber({ answer: offers }, { ...always, zone: ZONE })
    const { dial } = home.world.egress
    const stalling = {
      ...dial,
      secure: (socket: Parameters<typeof dial.secure>[0]) =>
        new Promise<never>((_, reject) => socket.once('close', () => reject(new Error('closed')))),
    }
    const other = createTestProber(
      {},
      { zone: ZONE, world: { ...home.world, egress: { ...home.world.egress, dial: stalling } } },
    )
    const walk = other.begin([ask(EMAIL, ['mx1.test'])], { single: true })
    await home.clock.advance(LIMITS.replyMs)
    for (let i = 0; i < 50 && !walk.finished; i++) await home.clock.advance(100)
    expect(nameOf(walk.only())).toBe('accepted/recipient')
  })
})

describe('the deadline', () => {
  test('during a DNS lookup ends the attempt', async () => {
    const home = createTestProber({}, { zone: { 'mx1.test': { A: 'never' } } })
    const walk = home.begin([ask(EMAIL, ['mx1.test'])], { single: true })
    await home.clock.advance(1_000)
    walk.abort()
    await walk.end()
    expect(nameOf(walk.only())).toBe('no-response/timeout')
    expect(home.mx.dialled).toEqual([])
  })

  test('during the greeting closes the connection at once and dials no other host', async () => {
    const home = createTestProber({ greeting: null }, { zone: ZONE })
    const walk = home.begin([ask(EMAIL, HOSTS)], { single: true })
    await home.clock.advance(5_000)
    expect(home.mx.sessions[0]?.closed).toBe(false)
    walk.abort()
    await home.clock.advance(0)
    await home.clock.advance(0)
    expect(walk.finished).toBe(true)
    expect(home.mx.sessions.map(({ closed }) => closed)).toEqual([true])
    expect(walk.only().answer).toMatchObject({
      kind: 'no-response',
      why: 'timeout',
      stage: 'greeting',
    })
    expect(home.clock.pending).toBe(0)
  })

  test('during the dial sends nothing on the connection', async () => {
    const home = createTestProber({}, { zone: ZONE })
    const { dial } = home.world.egress
    const late = {
      ...dial,
      connect: async (...given: Parameters<typeof dial.connect>) => {
        const socket = await dial.connect(...given)
        walk.abort()
        return socket
      },
    }
    const other = createTestProber(
      {},
      { zone: ZONE, world: { ...home.world, egress: { ...home.world.egress, dial: late } } },
    )
    const walk = other.begin([ask(EMAIL, HOSTS)], { single: true })
    await home.clock.advance(0)
    await home.clock.advance(0)
    expect(walk.finished).toBe(true)
    expect(home.mx.lines()).toEqual([])
    expect(nameOf(walk.only())).toBe('no-response/timeout')
  })
})
