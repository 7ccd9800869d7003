import { describe, expect, test } from 'vitest'
import { type EngineOptions, presentResult, type Result } from '../../src/index.ts'
import { MINUTE, SECOND } from '../../src/platform/clock.ts'
import { createTestEngine } from '../support/engine.ts'
import { type MxScript, type MxSession, refused } from '../support/mx.ts'
import { isRandomRecipient, toRecipients } from '../support/recipients.ts'
import { drainEventLoop } from '../support/wait.ts'
import type { ZoneEntry } from '../support/zone.ts'

const friendly = toRecipients(to => (isRandomRecipient(to) ? '550 5.1.1 No such user' : undefined))
const SHARED = '192.0.2.80'
const BACKUP = '192.0.2.90'

/** Domains with distinct exchanger names; `ipsOf` returns the addresses of each. */
function vanityZone(count: number, ipsOf = (_: number): string[] => [SHARED]) {
  const names = Array.from({ length: count }, (_, n) => `vanity${n}.test`)
  const zone = names.flatMap((name, n): [string, ZoneEntry][] => [
    [name, { MX: [[10, `mx.${name}`]] }],
    [`mx.${name}`, { A: ipsOf(n) }],
  ])
  return { zone: Object.fromEntries(zone), addresses: names.map(name => `ann@${name}`) }
}

/** An engine with the default limits, and the statistics of its connections. */
function vanityEngine(
  { zone }: { zone: Record<string, ZoneEntry> },
  options: { engine?: EngineOptions; script?: MxScript } = {},
) {
  const open = { peak: 0, at: [] as number[] }
  const home = createTestEngine({
    zone,
    script: { answer: friendly, ...options.script },
    engine: { sessionsPerSecond: 1, ...options.engine },
    dial: (mx, clock) => ({
      ...mx,
      async connect(to, signal) {
        open.at.push(clock.monotonicNow())
        const socket = await mx.connect(to, signal)
        const now = home.mx.sessions.filter(({ closed }) => !closed).length
        open.peak = Math.max(open.peak, now)
        return socket
      },
    }),
  })
  /** The maximum number of connections opened within one second. */
  const perSecond = () =>
    Math.max(...open.at.map(from => open.at.filter(at => at >= from && at < from + SECOND).length))
  return { ...home, open, perSecond }
}

const reasonsIn = (results: readonly { verdict: { reason: string } }[]) =>
  Object.fromEntries(
    [...Map.groupBy(results, ({ verdict }) => verdict.reason)].map(([reason, some]) => [
      reason,
      some.length,
    ]),
  )

describe('400 vanity domains on one address', () => {
  test('get two concurrent connections and one new one per second, as one operator does', async () => {
    const vanity = vanityZone(400)
    const home = vanityEngine(vanity)
    const results = await home.many(vanity.addresses)
    expect(reasonsIn(results)).toEqual({ accepted_email: 400 })
    expect(home.open.peak).toBeLessThanOrEqual(2)
    // The first second has a burst of two.
    expect(home.perSecond()).toBeLessThanOrEqual(2)
    expect(home.mx.dialled).toHaveLength(400)
  })

  test('are all probed in a list that does not wait, as no server asked it to wait', async () => {
    const vanity = vanityZone(40)
    const home = vanityEngine(vanity)
    const results = await home.many(vanity.addresses, { wait: false })
    expect(reasonsIn(results)).toEqual({ accepted_email: 40 })
  })

  test('do not delay the rest of the list', async () => {
    const vanity = vanityZone(400)
    const home = vanityEngine(vanity, { engine: { concurrency: 3 } })
    const startedAt = home.clock.monotonicNow()
    let othersAt: number | null = null
    const run = (async () => {
      for await (const { email } of home.engine.verifyMany([...vanity.addresses, 'bob@a.test'])) {
        if (email === 'bob@a.test') othersAt = home.clock.monotonicNow() - startedAt
      }
    })()
    await home.settled(run)
    expect(othersAt).toBeLessThanOrEqual(20 * SECOND)
    expect(home.clock.monotonicNow() - startedAt).toBeGreaterThan(300 * SECOND)
  })

  test('do not fail because of the wait for a connection', async () => {
    const vanity = vanityZone(60)
    // Slower than the rate: a connection starts later than first estimated.
    const slow: MxScript = {
      greeting: session => {
        void home.clock.after(20 * SECOND, () => session.say('220 late'))
        return null
      },
    }
    const home = vanityEngine(vanity, { script: slow })
    const results = await home.many(vanity.addresses)
    expect(reasonsIn(results)).toEqual({ accepted_email: 60 })
    expect(home.open.peak).toBe(2)
  })
})

describe('20 domains on one address, each with a backup exchanger at another operator', () => {
  const backedUp = (ipsOf?: (n: number) => string[]) => {
    const { zone, addresses } = vanityZone(20, ipsOf)
    for (const [n, address] of addresses.entries()) {
      const name = address.split('@')[1] as string
      const MX = [[10, `mx.${name}`] as const, [20, `mx.backup${n}.example`] as const]
      zone[name] = { MX }
      zone[`mx.backup${n}.example`] = { A: [BACKUP] }
    }
    return { zone, addresses }
  }

  test('are all probed at the first exchanger', async () => {
    const vanity = backedUp()
    const home = vanityEngine(vanity)
    expect(reasonsIn(await home.many(vanity.addresses))).toEqual({ accepted_email: 20 })
    expect(home.mx.dialled.map(({ ip }) => ip)).toEqual(Array(20).fill(SHARED))
    expect(home.loggedErrors).toEqual([])
  })

  test('are all probed at the backup while the first exchangers are down', async () => {
    const vanity = backedUp(n => [`192.0.2.${101 + n}`])
    const home = vanityEngine(vanity, {
      script: {
        connect: to => {
          if (to.ip !== BACKUP) throw refused(to)
        },
      },
    })
    expect(reasonsIn(await home.many(vanity.addresses))).toEqual({ accepted_email: 20 })
    expect(home.loggedErrors).toEqual([])
  })
})

describe('an IP address with many host names', () => {
  test('is throttled for all of them after one temporary failure', async () => {
    const vanity = vanityZone(30)
    let isSlow = true
    const home = vanityEngine(vanity, {
      script: { greeting: () => (isSlow ? '421 4.7.0 Too many connections from you' : undefined) },
    })
    const startedAt = home.clock.monotonicNow()
    let dialledAt: number | null = null
    home.clock.after(MINUTE, () => {
      dialledAt = home.mx.dialled.length
      isSlow = false
    })
    expect(reasonsIn(await home.many(vanity.addresses))).toEqual({ accepted_email: 30 })
    expect(dialledAt).toBeLessThanOrEqual(2)
    expect(home.clock.monotonicNow() - startedAt).toBeGreaterThan(5 * MINUTE)
  })

  test('is not dialled for each of them while it is down', async () => {
    const vanity = vanityZone(100)
    const home = vanityEngine(vanity, {
      script: {
        connect: to => {
          if (to.ip === SHARED) throw refused(to)
        },
      },
    })
    const results = await home.many(vanity.addresses)
    expect(reasonsIn(results)).toEqual({ no_connect: 100 })
    expect(home.mx.dialled.filter(({ ip }) => ip === SHARED).length).toBeLessThanOrEqual(6)
  })

  test('is limited for single verifications too, each of which waits within its deadline', async () => {
    const vanity = vanityZone(20)
    const home = vanityEngine(vanity, { engine: { deadlineMs: 10_000 } })
    const run = Promise.all(vanity.addresses.map(address => home.engine.verify(address)))
    const results = await home.settled(run)
    expect(home.open.peak).toBeLessThanOrEqual(2)
    expect(home.perSecond()).toBeLessThanOrEqual(2)
    const { accepted_email: answered = 0, ...others } = reasonsIn(results)
    expect(answered).toBeGreaterThanOrEqual(10)
    expect(Object.keys(others)).toEqual(['smtp_skipped'])
    const held = results.filter(({ verdict }) => verdict.reason === 'smtp_skipped')
    for (const { evidence } of held) {
      expect(evidence.answer).toMatchObject({
        kind: 'no-response',
        why: 'own-limit',
        detail: 'not probed in time: ev waited for its own rate limit for this mail server',
      })
    }
    expect(presentResult(held[0] as Result)).toMatchObject({ class: 'unknown', retry_after: 10 })
    // The servers did not fail.
    const again = await home.verify(vanity.addresses.at(-1) as string)
    expect(again.verdict.reason).toBe('accepted_email')
  })

  test('is skipped for another address of the same host with free capacity', async () => {
    const vanity = vanityZone(2, n => (n === 0 ? [SHARED] : [SHARED, '192.0.2.81']))
    const home = vanityEngine(vanity, {
      engine: { sessionsPerOperator: 1 },
      script: {
        answer: (line, session) => (session.to.ip === SHARED ? null : friendly(line, session)),
      },
    })
    const [first, second] = vanity.addresses as [string, string]
    void home.engine.verify(first)
    await drainEventLoop()
    expect(await home.reason(second)).toBe('accepted_email')
    expect(home.mx.dialled.map(({ ip }) => ip)).toEqual([SHARED, '192.0.2.81'])
  })
})

describe('a server that serves two connections of a client at once', () => {
  const REFUSAL = '421 4.7.0 Too many concurrent connections from your address'

  /** Returns an engine that opens up to five connections to an operator, and counts refusals. */
  function strictEngine(vanity: ReturnType<typeof vanityZone>) {
    const refused = new Set<MxSession>()
    const greeting = (session: MxSession) => {
      const open = home.mx.sessions.filter(one => !one.closed && !refused.has(one))
      if (open.length > 2) refused.add(session)
      home.clock.after(SECOND, () => session.say(refused.has(session) ? REFUSAL : '220 mx'))
      return null
    }
    const home = vanityEngine(vanity, {
      script: { greeting },
      engine: { sessionsPerOperator: 5, recipientsPerSession: 20, sessionsPerSecond: 100 },
    })
    return { ...home, refused }
  }

  test('refuses those of the first burst only', async () => {
    const { zone } = vanityZone(1)
    const addresses = Array.from({ length: 400 }, (_, n) => `user${n}@vanity0.test`)
    const home = strictEngine({ zone, addresses })
    expect(reasonsIn(await home.many(addresses))).toEqual({ accepted_email: 400 })
    expect(home.refused.size).toBe(3)
  })

  test('refuses those of the first burst only, though each domain is its own operator', async () => {
    const vanity = vanityZone(40)
    const home = strictEngine(vanity)
    expect(reasonsIn(await home.many(vanity.addresses))).toEqual({ accepted_email: 40 })
    expect(home.refused.size).toBe(3)
  })
})

test('the addresses of one network share 100 times the connections of one address', async () => {
  const vanity = vanityZone(150, n => [`192.0.2.${n + 101}`])
  const home = vanityEngine(vanity, {
    engine: { sessionsPerOperator: 1, sessionsPerSecond: 1_000 },
  })
  const results = await home.many(vanity.addresses)
  expect(reasonsIn(results)).toEqual({ accepted_email: 150 })
  expect(home.open.peak).toBeLessThanOrEqual(100)
  expect(home.open.peak).toBeGreaterThan(50)
})

test('an address and a network have settings of their own, which the limits of operators do not change', async () => {
  const onOne = vanityZone(12)
  const own = vanityEngine(onOne, {
    engine: { sessionsPerOperator: 10, sessionsPerSecond: 1_000, sessionsPerAddress: 3 },
  })
  expect(reasonsIn(await own.many(onOne.addresses))).toEqual({ accepted_email: 12 })
  expect(own.open.peak).toBe(3)
  const inNetwork = vanityZone(12, n => [`192.0.2.${n + 101}`])
  const shared = vanityEngine(inNetwork, {
    engine: { sessionsPerSecond: 1_000, sessionsPerNetwork: 4, sessionsPerSecondPerNetwork: 2 },
  })
  expect(reasonsIn(await shared.many(inNetwork.addresses))).toEqual({ accepted_email: 12 })
  expect(shared.open.peak).toBeLessThanOrEqual(4)
  // The burst of four, and two more in the rest of the second.
  expect(shared.perSecond()).toBeLessThanOrEqual(6)
})

test('a built-in operator has only the limits of its own row', async () => {
  const names = ['aspmx.l.google.com', 'alt1.aspmx.l.google.com']
  const zone: Record<string, ZoneEntry> = Object.fromEntries(
    names.map(name => [name, { A: [SHARED] }]),
  )
  for (let n = 0; n < 10; n++) zone[`tenant${n}.test`] = { MX: [[10, names[n % 2] as string]] }
  const home = vanityEngine({ zone })
  const addresses = Array.from({ length: 10 }, (_, n) => `ann@tenant${n}.test`)
  const runs = Promise.all(addresses.map(address => home.engine.verify(address)))
  await drainEventLoop()
  expect(home.open.peak).toBe(5)
  await home.settled(runs)
})
