import { describe, expect, test } from 'vitest'
import { createMxOperatorReader } from '../../../src/engine/dns/operator-table.ts'
import { hostsOf } from '../../../src/engine/probe/mx-groups.ts'
import {
  groupHostsByOperator,
  selectHosts,
  shouldTryNextHosts,
} from '../../../src/engine/probe/mx-hosts.ts'
import type { Dial } from '../../../src/engine/smtp/dial.ts'
import { createTestEngine, reasonsOf } from '../../support/engine.ts'
import { type MxScript, type MxSession, refused, silentDial } from '../../support/mx.ts'
import { isRandomRecipient, knows, recipientOf } from '../../support/recipients.ts'

const mx = (...hosts: string[]) => ({
  kind: 'mx' as const,
  hosts: hosts.map((host, n) => ({ preference: n, host })),
})

describe('the MX hosts of a route', () => {
  const shown = (...hosts: string[]) =>
    groupHostsByOperator(mx(...hosts), createMxOperatorReader(), false).map(
      ({ operator, route }) => `${operator.name}: ${hostsOf(route).join(' ')}`,
    )

  test.each<[hosts: string[], sets: string[]]>([
    [['mx1.a.test', 'mx2.a.test'], ['a.test: mx1.a.test mx2.a.test']],
    [
      ['mx.a.test', 'backup.b.test'],
      ['a.test: mx.a.test', 'b.test: backup.b.test'],
    ],
    [
      ['mx1.a.test', 'mx.b.test', 'mx2.a.test'],
      ['a.test: mx1.a.test mx2.a.test', 'b.test: mx.b.test'],
    ],
    [
      ['mx.a.test', 'mx.b.test', 'mx.c.test'],
      ['a.test: mx.a.test', 'b.test: mx.b.test', 'c.test: mx.c.test'],
    ],
  ])('are grouped by operator: %j', (hosts, sets) => {
    expect(shown(...hosts)).toEqual(sets)
  })

  test('of one operator are the same route object', () => {
    const route = mx('mx1.a.test', 'mx2.a.test')
    expect(groupHostsByOperator(route, createMxOperatorReader(), false)[0].route).toBe(route)
  })

  test('that accepted a recipient are used for its catch-all test', () => {
    const sets = groupHostsByOperator(mx('mx.a.test', 'mx.b.test'), createMxOperatorReader(), false)
    const reply = { code: 250, enhanced: null, text: 'Ok' }
    const acceptedBy = (host: string | null) => ({
      answer: { kind: 'accepted', why: 'recipient', stage: 'rcpt', reply } as const,
      egress: null,
      host,
      ip: null,
      tls: false,
      connectMs: null,
      at: 0,
    })
    expect(selectHosts(sets, null)).toBe(sets)
    expect(selectHosts(sets, acceptedBy('mx.b.test'))).toEqual([sets[1]])
    expect(selectHosts(sets, acceptedBy('mx.a.test'))).toEqual([sets[0]])
    expect(selectHosts(sets, acceptedBy(null))).toEqual([sets[0]])
  })

  test('are skipped only before MAIL', () => {
    const at = (stage: 'connect' | 'greeting' | 'ehlo' | 'starttls' | 'mail' | 'rcpt') =>
      shouldTryNextHosts({ kind: 'no-response', why: 'closed', stage, detail: '' })
    expect((['connect', 'greeting', 'ehlo', 'starttls'] as const).map(at)).toEqual(
      Array(4).fill(true),
    )
    expect([at('mail'), at('rcpt')]).toEqual([false, false])
  })
})

const NO = '550 5.1.1 No such user'
const BUSY = '421 4.7.0 Too many connections, try again later'

/** `two.test` has its own MX host and a backup elsewhere; `one.test` shares the first operator. */
const ZONE = {
  'two.test': {
    MX: [
      [10, 'mx.first.test'],
      [20, 'mx.second.test'],
    ],
  },
  'one.test': { MX: [[10, 'mx.first.test']] },
  'other.test': { MX: [[10, 'mx.second.test']] },
  'mx.first.test': { A: ['192.0.2.11'] },
  'mx.second.test': { A: ['192.0.2.12'] },
} as const
const FIRST = '192.0.2.11'
const SECOND = '192.0.2.12'

const isAt = (ip: string, { to }: MxSession) => to.ip === ip
/** Accepts every recipient except random names. */
const tells = (line: string) => (isRandomRecipient(recipientOf(line)) ? NO : undefined)

describe('a primary MX host without a session', () => {
  type Script = MxScript
  const firstFails: [what: string, script: Script][] = [
    ['is busy', { greeting: s => (isAt(FIRST, s) ? BUSY : undefined), answer: tells }],
    [
      'refuses us',
      { greeting: s => (isAt(FIRST, s) ? '554 5.7.1 Blocked' : undefined), answer: tells },
    ],
    ['hangs up', { greeting: s => void (isAt(FIRST, s) && s.hangUp()), answer: tells }],
    [
      'is down',
      {
        connect: ({ ip }) => {
          if (ip === FIRST) throw new Error('ECONNREFUSED')
        },
        answer: tells,
      },
    ],
  ]
  test.each(firstFails)('because it %s does not block the second', async (_, script) => {
    const single = createTestEngine({ script, zone: ZONE })
    expect(await single.reason('ann@two.test')).toBe('accepted_email')
    const list = createTestEngine({ script, zone: ZONE })
    const startedAt = list.clock.monotonicNow()
    expect(reasonsOf(await list.many(['ann@two.test']))).toEqual(['ann@two.test accepted_email'])
    expect(list.clock.monotonicNow() - startedAt).toBeLessThan(60_000)
    for (const home of [single, list]) {
      expect(home.mx.dialled.at(-1)?.ip).toBe(SECOND)
    }
  })

  test('because it does not answer leaves time for the second', async () => {
    const dial = (mx: Dial): Dial => ({
      ...mx,
      connect: (to, signal) => (to.ip === SECOND ? mx : silentDial).connect(to, signal),
    })
    const zone = { ...ZONE, 'mx.first.test': { A: [FIRST, '192.0.2.13', '192.0.2.14'] } }
    const home = createTestEngine({ script: tells, zone, dial })
    const { verdict, tookMs } = await home.verify('ann@two.test')
    expect(verdict.reason).toBe('accepted_email')
    expect(tookMs).toBeLessThan(6_000)
    expect(reasonsOf(await home.many(['bob@two.test']))).toEqual(['bob@two.test accepted_email'])
  })

  test('because of a pause does not block the second, in a list or alone', async () => {
    const script = {
      greeting: (s: MxSession) => (isAt(FIRST, s) ? BUSY : undefined),
      answer: tells,
    }
    const home = createTestEngine({ script, zone: ZONE })
    await home.verify('bob@one.test')
    const dials = home.mx.dialled.length
    const startedAt = home.clock.monotonicNow()
    expect(reasonsOf(await home.many(['ann@two.test']))).toEqual(['ann@two.test accepted_email'])
    expect(await home.reason('cyd@two.test')).toBe('accepted_email')
    expect(home.clock.monotonicNow() - startedAt).toBeLessThan(60_000)
    // The operator that requested the pause is paused.
    expect(home.mx.dialled.slice(dials).map(({ ip }) => ip)).toEqual([SECOND, SECOND])
  })

  test('does not bypass the rate limits of the second operator', async () => {
    const home = createTestEngine({ script: { greeting: BUSY }, zone: ZONE })
    await home.verify('bob@other.test')
    expect(home.mx.dialled.map(({ ip }) => ip)).toEqual([SECOND])
    expect(await home.reason('ann@two.test')).toBe('unavailable_smtp')
    expect(home.mx.dialled.map(({ ip }) => ip)).toEqual([SECOND, FIRST])
  })

  test('is not skipped after a block at RCPT', async () => {
    const script = (line: string, session: MxSession) =>
      isAt(FIRST, session) && line.startsWith('RCPT')
        ? '554 5.7.1 Client host blocked using bl.example'
        : tells(line)
    const home = createTestEngine({ script, zone: ZONE })
    expect(await home.reason('ann@two.test')).toBe('probe_blocked')
    expect(home.mx.dialled.map(({ ip }) => ip)).toEqual([FIRST])
  })

  test('and a second one without an address do not make the address invalid', async () => {
    const zone = { ...ZONE, 'mx.second.test': {} }
    const script = {
      connect: () => {
        throw new Error('ECONNREFUSED')
      },
    }
    const home = createTestEngine({ script, zone })
    expect(await home.reason('ann@two.test')).toBe('no_connect')
  })
})

describe('the limit of hosts', () => {
  /** A domain with these hosts; those of `second.test` and `third.test` have an address. */
  const zoneOf = (...hosts: string[]) => ({
    'a.test': { MX: hosts.map((host, n) => [n, host] as const) },
    'mx.second.test': { A: [SECOND] },
    'mx.third.test': { A: ['192.0.2.13'] },
    'mx.fourth.test': { A: ['192.0.2.14'] },
  })
  const gone = ['mx.gone1.test', 'mx.gone2.test', 'mx.gone3.test']

  test.each<[what: string, hosts: string[]]>([
    ['of one operator', ['a.second.test', 'b.second.test', 'c.second.test', 'mx.second.test']],
    ['of several operators', [...gone, 'mx.second.test']],
    ['beside those of another', ['a.first.test', 'b.first.test', 'c.first.test', 'mx.second.test']],
  ])('does not count hosts without an address: %s', async (_, hosts) => {
    const home = createTestEngine({ script: tells, zone: zoneOf(...hosts) })
    expect(await home.reason('ann@a.test')).toBe('accepted_email')
    expect(reasonsOf(await home.many(['bob@a.test']))).toEqual(['bob@a.test accepted_email'])
  })

  test('is two operators whose hosts have an address', async () => {
    const zone = zoneOf(...gone, 'mx.second.test', 'mx.third.test', 'mx.fourth.test')
    const home = createTestEngine({ script: { greeting: BUSY }, zone })
    expect(await home.reason('ann@a.test')).toBe('unavailable_smtp')
    expect(home.mx.dialled.map(({ ip }) => ip)).toEqual([SECOND, '192.0.2.13'])
  })

  test('leaves a domain undeliverable only if none of its hosts has an address', async () => {
    const home = createTestEngine({ script: tells, zone: zoneOf(...gone) })
    expect(await home.reason('ann@a.test')).toBe('no_mx_record')
  })
})

describe('a backup MX that accepts every local part', () => {
  const script = (isBusy: () => boolean) => ({
    greeting: (s: MxSession) => (isAt(FIRST, s) && isBusy() ? BUSY : undefined),
    answer: (line: string, s: MxSession) =>
      isAt(FIRST, s) && !recipientOf(line).startsWith('ann') && line.startsWith('RCPT')
        ? NO
        : undefined,
  })

  test('is a catch-all without making the primary host one', async () => {
    let isBusy = true
    const home = createTestEngine({ script: script(() => isBusy), zone: ZONE })
    expect(await home.reason('ann@two.test')).toBe('catch_all')
    isBusy = false
    await home.clock.advance(3_600_000)
    const fresh = { forceRefresh: true }
    expect(await home.reason('ann@two.test', fresh)).toBe('accepted_email')
    isBusy = true
    expect(await home.reason('ann@two.test', fresh)).toBe('catch_all')
  })

  test('has a catch-all result of its own, also if one operator runs both hosts', async () => {
    let isDown = false
    const { reason } = createTestEngine({
      zone: {
        'same.test': {
          MX: [
            [10, 'mx1.same.test'],
            [20, 'mx2.same.test'],
          ],
        },
        'mx1.same.test': { A: ['192.0.2.11'] },
        'mx2.same.test': { A: ['192.0.2.12'] },
      },
      script: {
        connect: to => {
          if (isDown && to.ip === '192.0.2.11') throw refused(to)
        },
        answer: (line, session) =>
          session.to.ip === '192.0.2.11' ? knows('ann', 'bob')(line, session) : undefined,
      },
    })
    expect(await reason('ann@same.test')).toBe('accepted_email')
    isDown = true
    expect(await reason('gone@same.test')).toBe('catch_all')
    isDown = false
    expect(await reason('bob@same.test')).toBe('accepted_email')
  })

  test('causes a later retry at the primary host in a list', async () => {
    let isBusy = true
    const home = createTestEngine({ script: script(() => isBusy), zone: ZONE })
    home.clock.after(120_000, () => {
      isBusy = false
    })
    expect(reasonsOf(await home.many(['ann@two.test', 'gone@two.test']))).toEqual([
      'ann@two.test accepted_email',
      'gone@two.test rejected_email',
    ])
  })

  test('decides in a list if the primary host stays unreachable', async () => {
    const home = createTestEngine({ script: script(() => true), zone: ZONE })
    expect(reasonsOf(await home.many(['ann@two.test']))).toEqual(['ann@two.test catch_all'])
    expect(home.recipients().filter(to => to === 'ann@two.test').length).toBeLessThanOrEqual(3)
  })
})
