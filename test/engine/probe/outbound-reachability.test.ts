import { describe, expect, test } from 'vitest'
import type { ProbeTarget } from '../../../src/engine/probe/mx-groups.ts'
import { REFERENCE_MX_HOSTS } from '../../../src/engine/probe/outbound-reachability.ts'
import type { Dial, Target } from '../../../src/engine/smtp/dial.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { type Log, silentLog } from '../../../src/platform/log.ts'
import { refused } from '../../support/mx.ts'
import { ask, createTestProber, LIMITS, nameOf } from '../../support/prober.ts'
import { knows } from '../../support/recipients.ts'
import { drainEventLoop } from '../../support/wait.ts'
import type { ZoneEntry } from '../../support/zone.ts'

/** The result of a dial. */
type Fate = 'opens' | 'refused' | 'silent'

/** 300 MX hosts, each with its own address. */
const HOSTS = Array.from({ length: 300 }, (_, i) => `mx${i}.test`)
const EXCHANGERS: Record<string, ZoneEntry> = Object.fromEntries(
  HOSTS.map((host, i) => [host, { A: [`192.0.2.${i}`] }]),
)
const WELL_KNOWN: Record<string, ZoneEntry> = Object.fromEntries(
  REFERENCE_MX_HOSTS.map((host, i) => [host, { A: [`198.51.100.${i + 1}`] }]),
)
const isWellKnown = ({ host }: Target) => (REFERENCE_MX_HOSTS as readonly string[]).includes(host)

/** Each domain has its own MX hosts. */
const question = (number: number): ProbeTarget => ask(`ann@a${number}.test`, [`mx${number}.test`])
const questions = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => question(from + i))

/** A fixture with a configurable network: the result of each dial and of the reference hosts. */
function network(
  fate: (to: Target) => Fate,
  options: { wellKnown?: Fate | 'unheard-of'; zone?: Record<string, ZoneEntry> } = {},
) {
  const { wellKnown = 'silent' } = options
  const lot: { fate: typeof fate; wellKnown: Fate | null } = {
    fate,
    wellKnown: wellKnown === 'unheard-of' ? null : wellKnown,
  }
  const dialled: Target[] = []
  const notices: string[] = []
  const hanging = new Set<AbortSignal>()
  const note = (message: string) => void notices.push(message)
  const log: Log = { ...silentLog, info: note, warn: note }
  const home = createTestProber(knows(), {
    zone: { ...EXCHANGERS, ...(wellKnown === 'unheard-of' ? {} : WELL_KNOWN), ...options.zone },
    row: { sessionsMax: 300 },
    world: { log },
    dial: near => ({
      ...near,
      connect: (to, signal) => {
        dialled.push(to)
        hanging.add(signal)
        signal.addEventListener('abort', () => hanging.delete(signal), { once: true })
        return meet(
          isWellKnown(to) ? (lot.wellKnown ?? lot.fate(to)) : lot.fate(to),
          near,
          to,
          signal,
        )
      },
    }),
  })
  /** One run per target, all at the same time. */
  const together = (all: readonly ProbeTarget[], single = false) =>
    all.map(one => home.begin([one], { timeoutMs: MINUTE, single }))
  return {
    ...home,
    lot,
    notices,
    /** Dials that were never aborted. */
    hanging,
    together,
    /** Dials to the MX hosts of the targets and to the reference hosts. */
    dials: () => dialled.filter(to => !isWellKnown(to)).length,
    knocks: () => dialled.filter(isWellKnown).length,
    async pass(ms: number) {
      await home.clock.advance(ms)
      await drainEventLoop()
    },
  }
}

async function meet(fate: Fate, near: Dial, to: Target, signal: AbortSignal) {
  if (fate === 'opens') return near.connect(to, signal)
  if (fate === 'refused') throw refused(to)
  return new Promise<never>((_, reject) => {
    const giveUp = () => reject(new Error('given up'))
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
  })
}

const allSilent = () => 'silent' as const
const allRefused = () => 'refused' as const
/** How long dialing stops. */
const CLOSED_MS = 30 * SECOND
const CLOSED = 'not probed: outbound port 25 seems to be blocked'
const NOTICE = /^No mail server can be reached on port 25:.*ev doctor/

describe('a network without any answer', () => {
  test('counts as blocked after seven seconds: dials in flight end and no other starts', async () => {
    const { together, pass, dials, knocks, notices, begin, clock } = network(allSilent)
    const first = together(questions(0, 200))
    await pass(3 * SECOND - 1)
    expect({ dials: dials(), knocks: knocks() }).toEqual({ dials: 200, knocks: 0 })
    await pass(1)
    expect({ knocks: knocks(), notices }).toEqual({ knocks: 5, notices: [] })
    await pass(4 * SECOND)
    expect(notices).toEqual([expect.stringMatching(NOTICE)])
    const rest = await begin(questions(200, 100)).end()
    for (const { told } of [...first, rest]) {
      for (const { probed } of told) {
        expect(probed).toMatchObject({ asked: false, answer: { why: 'connect', detail: CLOSED } })
      }
    }
    expect(first.every(walk => walk.finished)).toBe(true)
    expect(rest.told).toHaveLength(100)
    expect({ dials: dials(), knocks: knocks(), count: notices.length }).toEqual({
      dials: 200,
      knocks: 5,
      count: 1,
    })
    expect(clock.pending).toBe(0)
  })

  test('counts as blocked for a single address as for a list', async () => {
    const { together, pass, begin } = network(allSilent)
    const [single] = together([ask('ann@a0.test', ['mx0.test', 'mx9.test'])], true)
    const list = begin([question(1)])
    await pass(3 * SECOND)
    expect([single?.finished, list.finished]).toEqual([false, false])
    await pass(4 * SECOND)
    for (const walk of [single, list]) {
      expect(walk?.only()).toMatchObject({ asked: false, answer: { detail: CLOSED } })
    }
    const alone = network(allSilent)
    const second = alone.begin([question(0)])
    await alone.pass(LIMITS.connectMs + 7 * SECOND)
    expect(second.only()).toMatchObject({ asked: false, answer: { detail: CLOSED } })
  })

  test('fails a waiting single verification at once', async () => {
    const { together, pass, single, dials } = network(allSilent)
    together(questions(0, 2))
    await pass(7 * SECOND)
    const { told } = await single(question(2))
    expect(told.map(({ probed }) => [nameOf(probed), probed.asked])).toEqual([
      ['no-response/connect', false],
    ])
    expect(dials()).toBe(2)
  })

  test('counts as open at the first success half a minute later, which is logged', async () => {
    const { together, pass, lot, begin, dials, knocks, notices } = network(allSilent)
    together(questions(0, 2))
    await pass(7 * SECOND)
    lot.fate = () => 'opens'
    await pass(CLOSED_MS - 1)
    const early = await begin([question(2)]).end()
    expect(early.only().asked).toBe(false)
    await pass(1)
    const walk = await begin(questions(3, 10)).end()
    expect(walk.told.map(({ probed }) => nameOf(probed))).toEqual(
      Array(10).fill('rejected/no-mailbox'),
    )
    expect({ dials: dials(), knocks: knocks() }).toEqual({ dials: 12, knocks: 10 })
    expect(notices.slice(1)).toEqual(['Mail servers are reachable again on port 25.'])
  })

  test('counts as open if a reference host answers, even if the target is down', async () => {
    const { together, pass, lot, begin, notices } = network(allSilent)
    together(questions(0, 2))
    await pass(7 * SECOND + CLOSED_MS)
    lot.wellKnown = 'opens'
    const walk = begin([question(2)])
    await pass(0)
    expect(notices).toHaveLength(2)
    await walk.end()
    expect(walk.only()).toMatchObject({ asked: true, answer: { why: 'connect' } })
  })

  test('is retried by one dial every half minute and logged once', async () => {
    const { together, pass, dials, knocks, notices } = network(allSilent)
    together(questions(0, 2))
    await pass(7 * SECOND + CLOSED_MS)
    const again = together(questions(2, 50))
    await pass(0)
    expect({ dials: dials(), knocks: knocks() }).toEqual({ dials: 3, knocks: 10 })
    expect(again.filter(walk => walk.finished)).toHaveLength(49)
    await pass(4 * SECOND)
    expect(again.every(walk => walk.told[0]?.probed.asked === false)).toBe(true)
    await pass(CLOSED_MS - 1)
    together(questions(52, 50))
    await pass(0)
    expect(dials()).toBe(3)
    expect(notices).toHaveLength(1)
  })

  test('may also refuse connections, like a rejecting firewall', async () => {
    const { single, together, pass, notices } = network(allRefused, { wellKnown: 'refused' })
    await single(question(0))
    expect(notices).toEqual([])
    together([question(1)])
    await pass(0)
    expect(notices).toEqual([expect.stringMatching(NOTICE)])
  })

  test('counts as blocked after five MX groups if the reference hosts do not resolve', async () => {
    const { together, pass, notices } = network(allSilent, { wellKnown: 'unheard-of' })
    together(questions(0, 4))
    await pass(9 * SECOND)
    expect(notices).toEqual([])
    const last = together([question(4)])
    await pass(4 * SECOND - 1)
    expect(notices).toEqual([])
    await pass(1)
    expect(notices).toHaveLength(1)
    expect(last[0]?.told[0]?.probed.asked).toBe(false)
  })

  test('needs two reference hosts with public addresses for a decision', async () => {
    const [first = '', second = ''] = REFERENCE_MX_HOSTS
    const one = network(allSilent, {
      wellKnown: 'unheard-of',
      zone: { [first]: { A: ['198.51.100.1'] }, [second]: { A: ['127.0.0.1'] } },
    })
    const isPublic = (ip: string) => ip !== '127.0.0.1'
    Object.assign(one.world, { isPublic })
    one.together(questions(0, 2))
    await one.pass(9 * SECOND)
    expect({ knocks: one.knocks(), notices: one.notices }).toEqual({ knocks: 1, notices: [] })
  })
})

describe('a network with an answer', () => {
  test('needs no probe for an hour, whichever hosts are down, as long as others open', async () => {
    const { begin, together, pass, lot, knocks } = network(() => 'opens')
    await begin([question(0)]).end()
    lot.fate = ({ host }) => (host === 'mx99.test' ? 'opens' : 'refused')
    for (let from = 1; from < 21; from += 5) {
      const down = together(questions(from, 5))
      // Each host is dialed twice.
      for (let dials = 1; dials <= 2; dials++) {
        await pass(SECOND)
        expect(down.some(walk => walk.finished)).toBe(false)
        await begin([question(99)]).end()
        await drainEventLoop()
      }
      expect(down.map(walk => walk.told[0]?.probed)).toEqual(
        Array(5).fill(expect.objectContaining({ asked: true })),
      )
    }
    expect(knocks()).toBe(0)
    lot.fate = allSilent
    await pass(HOUR)
    together(questions(30, 2))
    await pass(3 * SECOND)
    expect(knocks()).toBe(5)
  })

  test('clears earlier failures', async () => {
    const { together, begin, pass, lot, knocks } = network(allSilent)
    const [first] = together([question(0)])
    await pass(9 * SECOND)
    first?.abort()
    lot.fate = () => 'opens'
    await begin([question(1)]).end()
    lot.fate = allSilent
    await pass(HOUR)
    together([question(2)])
    await pass(3 * SECOND)
    expect(knocks()).toBe(0)
  })

  test('during the probe of the reference hosts does not count as blocked', async () => {
    const { together, pass, lot, notices } = network(allSilent)
    together(questions(0, 3))
    await pass(5 * SECOND)
    lot.fate = () => 'opens'
    const [walk] = together([question(3)])
    await pass(30 * SECOND)
    expect(walk?.answers()).toEqual(['ann@a3.test rejected/no-mailbox'])
    expect(notices).toEqual([])
  })

  test('from a reference host only: each other host is down after its own timeout', async () => {
    const { together, pass, knocks, notices, mx } = network(allSilent, { wellKnown: 'opens' })
    const walks = together(questions(0, 3))
    await pass(3 * SECOND)
    expect(knocks()).toBe(5)
    // Nothing was sent to them.
    expect(mx.lines()).toEqual([])
    expect(mx.sessions.every(({ closed }) => closed)).toBe(true)
    await pass(LIMITS.connectMs * 2 - 3 * SECOND - 1)
    expect(walks.some(walk => walk.finished)).toBe(false)
    await pass(1)
    for (const walk of walks) {
      expect(walk.only()).toMatchObject({
        asked: true,
        answer: { detail: 'no answer within 10 s' },
      })
    }
    expect({ knocks: knocks(), notices }).toEqual({ knocks: 5, notices: [] })
  })

  test('is probed at one address of each family', async () => {
    const [first = '', second = ''] = REFERENCE_MX_HOSTS
    const both = { A: ['198.51.100.1', '198.51.100.2'], AAAA: ['2001:db8::1', '2001:db8::2'] }
    const { together, pass, knocks, notices } = network(
      ({ ip }) => (ip === '2001:db8::1' ? 'opens' : 'silent'),
      { wellKnown: 'unheard-of', zone: { [first]: both, [second]: both } },
    )
    together(questions(0, 2))
    await pass(3 * SECOND)
    expect(knocks()).toBe(4)
    await pass(4 * SECOND)
    expect(notices).toEqual([])
  })

  test('ends the probe of the other reference hosts', async () => {
    const { together, pass, knocks, hanging } = network(
      ({ ip }) => (ip === '198.51.100.1' ? 'opens' : 'silent'),
      { wellKnown: 'unheard-of', zone: WELL_KNOWN },
    )
    together(questions(0, 2))
    await pass(3 * SECOND)
    expect({ knocks: knocks(), hanging: hanging.size }).toEqual({ knocks: 5, hanging: 2 })
  })
})

describe('an outage of a network that had an answer', () => {
  async function openNetwork(options: Parameters<typeof network>[1] = {}) {
    const world = network(() => 'opens', options)
    await world.begin([question(0)]).end()
    return world
  }

  test.each([
    ['refuses connections', 'refused', 2 * SECOND],
    ['is silent', 'silent', LIMITS.connectMs + (2 + 4) * SECOND],
  ] as const)('%s: it is found, and no address has a result', async (_, fate, ms) => {
    const { together, pass, lot, notices, prober, begin } = await openNetwork({ wellKnown: fate })
    lot.fate = () => fate
    const walks = together(questions(1, 10))
    await pass(ms)
    expect(notices).toEqual([expect.stringMatching(NOTICE)])
    for (const walk of walks) {
      expect(walk.only()).toMatchObject({
        asked: false,
        answer: { why: 'connect', detail: CLOSED },
      })
    }
    expect(prober.uncertainForMs).toBe(CLOSED_MS)
    lot.fate = () => 'opens'
    await pass(CLOSED_MS)
    const again = begin(questions(1, 10))
    await again.end()
    expect(again.answers()).toHaveLength(10)
    expect(again.told.map(({ probed }) => nameOf(probed))).toEqual(
      Array(10).fill('rejected/no-mailbox'),
    )
    expect(notices).toHaveLength(2)
  })

  test.each(['server', 'timeout', 'never'] as const)(
    'is found if the DNS fails too (%s)',
    async fault => {
      const zone = Object.fromEntries(REFERENCE_MX_HOSTS.map(host => [host, fault]))
      const { together, pass, lot, notices } = await openNetwork({ wellKnown: 'unheard-of', zone })
      lot.fate = allRefused
      const walks = together(questions(1, 10))
      await pass((2 + 4 + 3) * SECOND)
      expect(notices).toEqual([expect.stringMatching(NOTICE)])
      for (const walk of walks) {
        expect(walk.only()).toMatchObject({ asked: false, answer: { detail: CLOSED } })
      }
    },
  )

  test('is excluded if a reference host answers; they are asked at most every five minutes', async () => {
    const { together, pass, lot, knocks, notices } = await openNetwork({ wellKnown: 'opens' })
    lot.fate = allRefused
    const first = together(questions(1, 2))
    await pass(2 * SECOND - 1)
    expect(first.some(walk => walk.finished)).toBe(false)
    await pass(1)
    expect(first.every(walk => walk.only().asked)).toBe(true)
    const second = together(questions(3, 20))
    await pass(0)
    expect(second.every(walk => walk.only().asked)).toBe(true)
    expect(knocks()).toBe(5)
    await pass(5 * MINUTE)
    together(questions(30, 2))
    await pass(2 * SECOND)
    expect({ knocks: knocks(), notices }).toEqual({ knocks: 10, notices: [] })
  })

  test('is not assumed if the reference hosts do not resolve', async () => {
    const { together, pass, lot, notices, knocks } = await openNetwork({ wellKnown: 'unheard-of' })
    lot.fate = allRefused
    const [one] = together([question(1)])
    await pass(2 * SECOND)
    expect(one?.finished).toBe(false)
    const others = together(questions(2, 20))
    await pass(5 * SECOND)
    expect(one?.only()).toMatchObject({ asked: true, answer: { why: 'connect' } })
    expect(others.every(walk => walk.only().asked)).toBe(true)
    expect({ knocks: knocks(), notices }).toEqual({ knocks: 0, notices: [] })
  })

  test('is awaited for ten minutes', async () => {
    const { together, pass, lot, prober, knocks } = await openNetwork({ wellKnown: 'refused' })
    lot.fate = allRefused
    together(questions(1, 2))
    await pass(2 * SECOND)
    for (let number = 3; prober.uncertainForMs !== null; number++) {
      expect(prober.uncertainForMs).toBe(CLOSED_MS)
      await pass(CLOSED_MS)
      together([question(number)])
      await pass(0)
    }
    // The first probe, and one every half minute.
    expect(knocks() / 5).toBe(1 + (10 * MINUTE) / CLOSED_MS)
  })

  test('does not delay a single verification', async () => {
    const { single, lot, clock } = await openNetwork()
    lot.fate = allRefused
    const before = clock.monotonicNow()
    await single(question(1))
    expect(clock.monotonicNow() - before).toBe(0)
  })

  test('close does not wait for the search', async () => {
    const { together, lot, pass, prober, clock } = await openNetwork()
    lot.fate = allRefused
    const [walk] = together([question(1)])
    await pass(0)
    walk?.abort()
    await prober.close()
    await drainEventLoop()
    expect([walk?.finished, clock.pending]).toEqual([true, 0])
  })
})

describe('a lasting outage', () => {
  test('is uncertain before the second probe', async () => {
    const { together, pass, prober } = network(allSilent)
    together(questions(0, 2))
    await pass(3 * SECOND - 1)
    expect(prober.uncertainForMs).toBeNull()
    await pass(1)
    expect(prober.uncertainForMs).toBe(2 * SECOND)
    await pass(4 * SECOND)
    expect(prober.uncertainForMs).toBe(CLOSED_MS)
    await pass(CLOSED_MS)
    // One dial has to try again.
    expect(prober.uncertainForMs).toBe(0)
    together([question(2)])
    await pass(0)
    expect(prober.uncertainForMs).toBe(2 * SECOND)
    await pass(4 * SECOND)
    expect(prober.uncertainForMs).toBeNull()
  })

  test('is excluded when the port opens, and failed hosts are retried', async () => {
    const { together, pass, prober, lot, begin } = network(allRefused)
    const [first] = together(questions(0, 1))
    await pass(5 * SECOND)
    expect(first?.only()).toMatchObject({ answer: { why: 'connect' } })
    lot.fate = () => 'opens'
    await pass(CLOSED_MS)
    const walk = await begin([question(1)]).end()
    expect(walk.answers()).toEqual(['ann@a1.test rejected/no-mailbox'])
    expect(prober.uncertainForMs).toBeNull()
    const again = await begin([question(0)]).end()
    expect(again.answers()).toEqual(['ann@a0.test rejected/no-mailbox'])
  })

  test('is not awaited if it cannot be determined', async () => {
    const { together, pass, prober } = network(allSilent, { wellKnown: 'unheard-of' })
    together(questions(0, 2))
    await pass(3 * SECOND)
    expect(prober.uncertainForMs).toBe(2 * SECOND)
    await pass(3 * SECOND)
    expect(prober.uncertainForMs).toBeNull()
  })
})

describe('not counted as evidence of a blocked port', () => {
  test('one dial group, however many of its addresses refuse the connection', async () => {
    const zone = { 'mx0.test': { A: Array.from({ length: 5 }, (_, i) => `192.0.2.${i}`) } }
    const { single, dials, knocks } = network(allRefused, { zone })
    await single(question(0))
    expect({ dials: dials(), knocks: knocks() }).toEqual({ dials: 5, knocks: 0 })
  })

  test('a dial that is aborted before its timeout', async () => {
    const { together, pass, knocks } = network(allSilent)
    const walks = together(questions(0, 20))
    await pass(3 * SECOND - 1)
    for (const walk of walks) walk.abort()
    await pass(10 * SECOND)
    expect(knocks()).toBe(0)
  })

  test('but a dial after its timeout counts, even if it is aborted', async () => {
    const { together, pass, knocks } = network(allSilent)
    const walks = together(questions(0, 2))
    await pass(3 * SECOND)
    for (const walk of walks) walk.abort()
    expect(knocks()).toBe(5)
  })
})

test('close does not wait for the probe of the reference hosts', async () => {
  const { begin, clock, knocks, notices, prober, pass } = network(allRefused)
  await begin(questions(0, 2)).end()
  expect({ knocks: knocks(), pending: clock.pending }).toEqual({ knocks: 5, pending: 1 })
  await prober.close()
  await drainEventLoop()
  expect(clock.pending).toBe(0)
  await pass(MINUTE)
  expect(notices).toEqual([])
})

describe('the time of the outage', () => {
  test('is reported from the block until the port opens', async () => {
    const { together, pass, prober, clock, lot, begin } = network(allSilent)
    expect(prober.closedSince).toBeNull()
    together(questions(0, 2))
    await pass(7 * SECOND)
    const since = clock.now()
    expect(prober.closedSince).toBe(since)
    // The retry failed.
    await pass(CLOSED_MS)
    await begin([question(2)]).end()
    await pass(CLOSED_MS)
    expect(prober.closedSince).toBe(since)
    lot.fate = () => 'opens'
    await begin([question(3)]).end()
    expect(prober.closedSince).toBeNull()
  })
})
