import { describe, expect, test } from 'vitest'
import type { Dial } from '../../../src/engine/smtp/dial.ts'
import { createTestEngine, reasonsOf } from '../../support/engine.ts'
import { type MxScript, type MxSession, silentDial, stay } from '../../support/mx.ts'
import { knows, toRecipients } from '../../support/recipients.ts'
import { drainEventLoop } from '../../support/wait.ts'

const DEADLINE_MS = 10_000

/** No server answers, and signals are ignored. */
const deaf: Dial = { connect: () => new Promise(() => {}), secure: () => new Promise(() => {}) }
const answer = knows('ann')

describe('a single verification ends within its deadline', () => {
  test.each<[string, string, Parameters<typeof createTestEngine>[0]]>([
    ['a silent DNS', 'dns_error', { zone: { 'a.test': 'never' } }],
    ['a DNS that is silent of the exchanger', 'timeout', { zone: { 'mx.a.test': 'never' } }],
    ['a server that never greets', 'timeout', { script: { greeting: null } }],
    ['silence after EHLO', 'timeout', { script: silentTo('EHLO') }],
    ['silence after MAIL', 'timeout', { script: silentTo('MAIL') }],
    ['silence after RCPT', 'timeout', { script: silentTo('RCPT') }],
    ['a connection that never opens', 'timeout', { dial: () => silentDial }],
    ['a dial that does not hear', 'timeout', { dial: () => deaf }],
    [
      'a resolver that does not hear',
      'dns_error',
      { resolver: () => ({ resolve: () => new Promise(() => {}) }) },
    ],
  ])('%s: %s', async (_, reason, options) => {
    const { engine, clock, settled } = createTestEngine(options)
    const startedAt = clock.monotonicNow()
    const result = await settled(engine.verify('ann@a.test'))
    expect(result.verdict).toMatchObject({ reason, risk: 'unknown' })
    expect(clock.monotonicNow() - startedAt).toBeLessThanOrEqual(DEADLINE_MS)
    expect(clock.monotonicNow() - startedAt).toBeGreaterThan(1_000)
    expect(result.tookMs).toBeLessThanOrEqual(DEADLINE_MS)
  })

  test('with a block in the greeting and no reply to QUIT', async () => {
    let greet = () => {}
    const script: MxScript = {
      greeting: session => {
        greet = () => session.say('554 5.7.1 We know you')
        return null
      },
      answer: () => null,
    }
    const { engine, clock, settled } = createTestEngine({ script })
    const startedAt = clock.monotonicNow()
    const verifying = engine.verify('ann@a.test')
    await drainEventLoop()
    await clock.advance(DEADLINE_MS - 500)
    greet()
    const { verdict } = await settled(verifying)
    expect(clock.monotonicNow() - startedAt).toBeLessThanOrEqual(DEADLINE_MS)
    expect(verdict.risk).toBe('unknown')
  })

  test('with a reply that arrives slowly, line by line', async () => {
    const { engine, clock, settled } = createTestEngine({
      script: { greeting: session => drip(session) },
    })
    const drip = (session: MxSession) => {
      if (session.closed) return null
      session.say('220-wait for it')
      clock.after(1_000, () => drip(session))
      return null
    }
    const startedAt = clock.monotonicNow()
    const { verdict } = await settled(engine.verify('ann@a.test'))
    expect(verdict.reason).toBe('timeout')
    expect(clock.monotonicNow() - startedAt).toBeLessThanOrEqual(DEADLINE_MS)
  })

  test('with many silent MX hosts', async () => {
    const hosts = Array.from({ length: 20 }, (_, i) => `mx${i}.a.test`)
    const zone = {
      'a.test': { MX: hosts.map((host, i) => [i, host] as const) },
      ...Object.fromEntries(hosts.map((host, i) => [host, { A: [`192.0.2.${i + 1}`] }])),
    }
    const { engine, clock, settled } = createTestEngine({ zone, script: { greeting: null } })
    const startedAt = clock.monotonicNow()
    const { verdict } = await settled(engine.verify('ann@a.test'))
    expect(verdict.reason).toBe('timeout')
    expect(clock.monotonicNow() - startedAt).toBeLessThanOrEqual(DEADLINE_MS)
  })

  test('including the time of the DNS lookup', async () => {
    const { engine, clock, settled } = createTestEngine({
      script: { greeting: null },
      resolver: (zone, clock) => ({
        resolve: async (name, type, signal) => {
          if (type === 'MX') await new Promise<void>(wake => clock.after(8_000, wake))
          return zone.resolve(name, type, signal)
        },
      }),
    })
    const startedAt = clock.monotonicNow()
    const { verdict, evidence } = await settled(engine.verify('ann@a.test'))
    expect(verdict.reason).toBe('timeout')
    expect(evidence.timings.dnsMs).toBe(8_000)
    expect(clock.monotonicNow() - startedAt).toBeLessThanOrEqual(DEADLINE_MS)
  })

  test('with a configured deadline', async () => {
    const { engine, clock, settled } = createTestEngine({
      script: { greeting: null },
      engine: { deadlineMs: 1_500 },
    })
    const startedAt = clock.monotonicNow()
    await settled(engine.verify('ann@a.test'))
    expect(clock.monotonicNow() - startedAt).toBeLessThanOrEqual(1_500)
  })

  test.each([
    ['shorter than that of the engine', 300, 300],
    ['longer than that of the engine', 60_000, DEADLINE_MS],
    ['that has passed', 0, 0],
  ])('with a deadline of the call %s', async (_, deadlineMs, limitMs) => {
    const { engine, clock } = createTestEngine({ script: { greeting: null } })
    const startedAt = clock.monotonicNow()
    let endedAt = Number.POSITIVE_INFINITY
    const verifying = engine.verify('ann@a.test', { deadlineMs }).finally(() => {
      endedAt = clock.monotonicNow()
    })
    await drainEventLoop()
    await clock.advance(limitMs)
    expect(endedAt - startedAt).toBeLessThanOrEqual(limitMs)
    expect((await verifying).verdict.risk).toBe('unknown')
    await engine.close()
  })

  test('while it waits for the probe of a caller with a later deadline', async () => {
    const { engine, clock } = createTestEngine({ script: { greeting: null } })
    const first = engine.verify('ann@a.test')
    await drainEventLoop()
    const second = engine.verify('ann@a.test', { deadlineMs: 300 })
    await drainEventLoop()
    await clock.advance(300)
    expect((await second).verdict.reason).toBe('timeout')
    expect((await second).tookMs).toBe(300)
    await clock.advance(DEADLINE_MS)
    expect((await first).tookMs).toBeGreaterThan(9_000)
    await engine.close()
  })
})

test('a list waits at most a minute for a DNS lookup of one address', async () => {
  const { many, clock } = createTestEngine({
    resolver: zone => ({
      resolve: (name, type) =>
        name === 'silent.test' ? new Promise(() => {}) : zone.resolve(name, type),
    }),
  })
  const startedAt = clock.monotonicNow()
  expect(reasonsOf(await many(['ann@silent.test', 'ann@a.test'], { wait: false }))).toEqual([
    'ann@a.test accepted_email',
    'ann@silent.test dns_error',
  ])
  expect(clock.monotonicNow() - startedAt).toBeLessThanOrEqual(60_000)
})

describe('results from before the deadline are kept', () => {
  test('an accepted mailbox, if only the random recipient has no reply', async () => {
    const script = toRecipients(to => (to.startsWith('ann@') ? '250 2.1.5 Ok' : null))
    const { verify } = createTestEngine({ script })
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict.reason).toBe('low_deliverability')
    expect(evidence.catchAll).toBeNull()
  })

  // Exchange delays each refusal by five seconds, Courier by eight and more. QUIT waits behind it.
  test.each<[string, string, number]>([
    ['accepted', 'low_deliverability', 0],
    ['refused', 'rejected_email', 0],
    ['refused late', 'rejected_email', 9_000],
    ['refused too late to be sure that no reply is missing', 'timeout', 9_600],
  ])(
    'a mailbox that is %s, if the server delays the random recipient',
    async (how, reason, lateMs) => {
      const isThere = how === 'accepted'
      const script: MxScript = {
        answer: (line, session) => {
          if (session.lines.filter(heard => heard.startsWith('RCPT')).length > 1) return null
          if (!line.startsWith('RCPT')) return undefined
          const reply = isThere ? '250 2.1.5 Ok' : '550 5.1.1 No such user'
          if (lateMs === 0) return reply
          clock.after(lateMs, () => session.say(reply))
          return null
        },
      }
      const { engine, clock, settled, mx } = createTestEngine({ script })
      const { verdict } = await settled(engine.verify('ann@a.test'))
      expect(verdict.reason).toBe(reason)
      expect(mx.sessions).toHaveLength(1)
    },
  )

  test('the host that did not answer', async () => {
    const { verify } = createTestEngine({ script: silentTo('EHLO') })
    expect((await verify('ann@a.test')).evidence).toMatchObject({
      host: 'mx.a.test',
      answer: { kind: 'no-response', why: 'timeout' },
    })
  })
})

test.each([
  ['the connection to be closed', stay, 0],
  ['a reply to QUIT for more than half a second', () => null, 500],
])('a single verification does not wait for %s', async (_, toQuit, waitMs) => {
  const script: NonNullable<MxScript['answer']> = (line, session) =>
    line === 'QUIT' ? toQuit(session) : answer(line, session)
  const { engine, clock, mx } = createTestEngine({ script })
  const startedAt = clock.monotonicNow()
  const verifying = engine.verify('ann@a.test')
  await drainEventLoop()
  await clock.advance(waitMs)
  expect((await verifying).verdict.reason).toBe('accepted_email')
  expect(clock.monotonicNow() - startedAt).toBe(waitMs)
  let isDone = false
  void engine.close().then(() => {
    isDone = true
  })
  await clock.advance(1_999 - waitMs)
  expect(isDone).toBe(false)
  await clock.advance(1)
  expect(isDone).toBe(true)
  expect(mx.sessions[0]?.closed).toBe(true)
})

/** Does not answer this command or any later one. */
function silentTo(verb: string): MxScript {
  return {
    answer: (line, session) =>
      session.lines.some(heard => heard.startsWith(verb)) ? null : answer(line, session),
  }
}
