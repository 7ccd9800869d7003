import { describe, expect, test } from 'vitest'
import type { EgressConfig } from '../../../src/config/file-settings.ts'
import type { EngineOptions } from '../../../src/index.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { createTestEngine, mail } from '../../support/engine.ts'
import { type MxScript, silentDial } from '../../support/mx.ts'
import { BLOCKS_US, mxByEgress } from '../../support/mx-by-egress.ts'
import { isRandomRecipient, toRecipients, users } from '../../support/recipients.ts'

// Of two egresses, `a` is primary for the operator a.test, and `b` for b.test.

type Script = MxScript | NonNullable<MxScript['answer']>

function twoEgresses(scripts: { a: Script; b: Script }, engine: EngineOptions = {}) {
  const mx = mxByEgress(scripts)
  const options = { egresses: mx.egresses, dial: mx.dial, ...engine }
  const home = createTestEngine({ zone: mail('b.test', '192.0.2.2'), engine: options })
  return { ...home, mx, dials: { a: mx.of('a').dialled, b: mx.of('b').dialled } }
}

const REFUSAL = '554 5.7.1 Service unavailable; Client host blocked using bl.example'
const UNKNOWN = '550 5.1.1 No such user'
const GREYLISTED = '450 4.2.0 Greylisted, try again in 300 seconds'
const YES = '250 2.1.5 Ok'

/** Accepts every recipient except random names. */
const friendly = toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : YES))
/** Blocks us for these recipients only. */
const refusesFor = (...locals: readonly string[]) =>
  toRecipients(to => {
    if (isRandomRecipient(to)) return UNKNOWN
    return locals.includes(to.split('@')[0] ?? '') ? REFUSAL : YES
  })

describe('one address', () => {
  test('is probed by the egress of its operator, which the evidence names', async () => {
    const { engine, verify, dials } = twoEgresses({ a: friendly, b: friendly })
    expect(engine.egressPool.ranked('a.test')).toEqual(['a', 'b'])
    expect((await verify('ann@a.test')).evidence.egress).toBe('a')
    expect((await verify('ann@b.test')).evidence.egress).toBe('b')
    expect([dials.a.length, dials.b.length]).toEqual([1, 1])
  })

  test.each<[string, Script]>([
    ['altogether', BLOCKS_US],
    ['at MAIL', line => (line.startsWith('MAIL') ? REFUSAL : undefined)],
    ['for this recipient', refusesFor('ann')],
  ])('that blocks one egress %s is probed by another', async (_, script) => {
    const { verify, dials, clock } = twoEgresses({ a: script, b: friendly })
    const before = clock.monotonicNow()
    const { verdict, evidence } = await verify('ann@a.test')
    expect([verdict.reason, evidence.egress]).toEqual(['accepted_email', 'b'])
    expect([dials.a.length, dials.b.length]).toEqual([1, 1])
    expect(clock.monotonicNow() - before).toBeLessThan(SECOND)
  })

  test('keeps the egress in its cache entry', async () => {
    const { verify } = twoEgresses({ a: BLOCKS_US, b: friendly })
    await verify('ann@a.test')
    expect(await verify('ann@a.test')).toMatchObject({ cached: true, evidence: { egress: 'b' } })
  })

  test('of an operator that blocks an egress is probed by another from the start', async () => {
    const { verify, dials, clock } = twoEgresses({ a: BLOCKS_US, b: friendly })
    await verify('ann@a.test')
    await verify('bob@a.test')
    expect([dials.a.length, dials.b.length]).toEqual([1, 2])
    await clock.advance(31 * MINUTE)
    await verify('info@a.test')
    expect(dials.a).toHaveLength(2)
  })

  test('that blocks every egress ends as blocked after one probe by each', async () => {
    const { verify, dials } = twoEgresses({ a: BLOCKS_US, b: BLOCKS_US })
    expect((await verify('ann@a.test')).verdict.reason).toBe('probe_blocked')
    expect((await verify('bob@a.test')).verdict.reason).toBe('probe_blocked')
    expect([dials.a.length, dials.b.length]).toEqual([1, 1])
  })

  test.each<[string, Script]>([
    ['greylisted', toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : GREYLISTED))],
    ['rejected', toRecipients(() => UNKNOWN)],
    ['asked for TLS that it cannot have', toRecipients(() => '530 5.7.0 Must issue STARTTLS')],
  ])('that is %s is probed by one egress only', async (_, script) => {
    const { verify, dials } = twoEgresses({ a: script, b: friendly })
    await verify('ann@a.test')
    expect([dials.a.length, dials.b.length]).toEqual([1, 0])
  })

  test('has one deadline for all egresses: an earlier reply outlasts a timeout of the next one', async () => {
    const { verify, clock } = twoEgresses({ a: BLOCKS_US, b: { greeting: null } })
    const before = clock.monotonicNow()
    const { verdict, evidence } = await verify('ann@a.test')
    expect([verdict.reason, evidence.egress]).toEqual(['probe_blocked', 'a'])
    expect(clock.monotonicNow() - before).toBeLessThanOrEqual(10 * SECOND)
  })

  test('without a reply in time names the egress that probed it', async () => {
    const mx = mxByEgress({ a: friendly, b: friendly })
    const dial = (egress: EgressConfig) => (egress.name === 'a' ? silentDial : mx.dial(egress))
    const { verify } = createTestEngine({ engine: { egresses: mx.egresses, dial } })
    const { verdict, evidence } = await verify('ann@a.test')
    expect([verdict.risk, evidence.egress]).toEqual(['unknown', 'a'])
    expect(mx.of('b').dialled).toEqual([])
  })

  test('shows the dialogue of each egress', async () => {
    const { verify } = twoEgresses({ a: BLOCKS_US, b: friendly })
    const { evidence } = await verify('ann@a.test', { include: ['dialogue'] })
    const said = evidence.dialogue?.join('\n') ?? ''
    expect(said).toMatch(/554 5\.7\.1 .*EHLO b\.probe\.test.*RCPT TO:<ann@a\.test>/s)
  })

  test('is probed only by egresses that may probe its operator', async () => {
    const { verify, dials } = twoEgresses(
      { a: BLOCKS_US, b: friendly },
      { operators: { 'a.test': { egresses: ['a'] } } },
    )
    expect((await verify('ann@a.test')).verdict.reason).toBe('probe_blocked')
    expect(dials.b).toEqual([])
  })

  test('is not probed further if the engine is closed between two egresses', async () => {
    const home = twoEgresses({
      a: { ...BLOCKS_US, connect: () => void home.engine.close() },
      b: friendly,
    })
    const { verdict } = await home.verify('ann@a.test')
    expect(verdict.risk).toBe('unknown')
    expect(home.dials.b).toEqual([])
  })
})

describe('a list', () => {
  const egressOf = (results: Awaited<ReturnType<ReturnType<typeof createTestEngine>['many']>>) =>
    Object.fromEntries(results.map(({ email, evidence }) => [email, evidence.egress]))

  test('continues with another egress after a block, and every address is answered', async () => {
    const { many, mx, dials } = twoEgresses({ a: BLOCKS_US, b: friendly })
    const results = await many(users(150))
    expect(results).toHaveLength(150)
    expect(new Set(results.map(({ verdict }) => verdict.reason))).toEqual(
      new Set(['accepted_email']),
    )
    expect(new Set(Object.values(egressOf(results)))).toEqual(new Set(['b']))
    expect(mx.asked('b')).toHaveLength(150)
    // Both allowed connections were in flight when the first was blocked.
    expect(dials.a.length).toBeLessThanOrEqual(2)
  })

  test('continues with another egress only for the blocked addresses', async () => {
    const { many, mx } = twoEgresses({ a: refusesFor('user3', 'user7'), b: friendly })
    const results = await many(users(12))
    expect(results.map(({ verdict }) => verdict.reason)).toEqual(Array(12).fill('accepted_email'))
    expect(mx.asked('b').toSorted()).toEqual(['user3@a.test', 'user7@a.test'])
    expect(egressOf(results)).toMatchObject({ 'user2@a.test': 'a', 'user3@a.test': 'b' })
  })

  test('that blocks all egresses ends as blocked after few connections', async () => {
    const { many, dials } = twoEgresses({ a: BLOCKS_US, b: BLOCKS_US })
    const results = await many(users(150))
    expect(results.map(({ verdict }) => verdict.reason)).toEqual(Array(150).fill('probe_blocked'))
    // Addresses that were not probed are retried every half hour, for four hours.
    expect(dials.a.length).toBeLessThanOrEqual(2 * 9)
    expect(dials.b.length).toBeLessThanOrEqual(2 * 9)
  })

  test('that blocks all egresses and does not wait ends after one connection by each', async () => {
    const { many, dials } = twoEgresses({ a: BLOCKS_US, b: BLOCKS_US })
    const results = await many(users(150), { wait: false })
    expect(results.map(({ verdict }) => verdict.reason)).toEqual(Array(150).fill('probe_blocked'))
    expect(dials.a.length).toBeLessThanOrEqual(2)
    expect(dials.b.length).toBeLessThanOrEqual(2)
  })

  test('of few addresses is probed by one egress', async () => {
    const { many, mx, dials } = twoEgresses(
      { a: friendly, b: friendly },
      // The rest waits for its only connection.
      { sessionsPerOperator: 1 },
    )
    await many(users(25))
    expect(mx.asked('a')).toHaveLength(25)
    expect(dials.b).toEqual([])
  })

  test('of many addresses at an unknown operator shares the limit of one egress over all', async () => {
    let peak = 0
    const counted: MxScript = {
      answer: (line, session) => {
        const sessions = [...home.mx.of('a').sessions, ...home.mx.of('b').sessions]
        peak = Math.max(peak, sessions.filter(({ closed }) => !closed).length)
        return friendly(line, session)
      },
    }
    const home = twoEgresses({ a: counted, b: counted })
    const results = await home.many(users(400))
    expect(results.filter(({ verdict }) => verdict.reason === 'accepted_email')).toHaveLength(400)
    expect(peak).toBe(2)
  })

  test('of many addresses at a configured operator is probed by all, each within its own limit', async () => {
    const peak = { a: 0, b: 0 }
    const counted = (name: 'a' | 'b'): MxScript => ({
      answer: (line, session) => {
        const open = home.mx.of(name).sessions.filter(({ closed }) => !closed).length
        peak[name] = Math.max(peak[name], open)
        return friendly(line, session)
      },
    })
    const operators = { 'a.test': { sessionsPerOperator: 2 } }
    const home = twoEgresses({ a: counted('a'), b: counted('b') }, { operators })
    const results = await home.many(users(400))
    expect(results.filter(({ verdict }) => verdict.reason === 'accepted_email')).toHaveLength(400)
    expect(peak).toEqual({ a: 2, b: 2 })
    // The catch-all result does not depend on the egress.
    const said = [...home.mx.of('a').lines(), ...home.mx.of('b').lines()]
    expect(said.filter(line => isRandomRecipient(line.replace('RCPT TO:<', '')))).toHaveLength(1)
    expect(home.mx.asked('a').length + home.mx.asked('b').length).toBe(400)
  })

  test('that is greylisted is retried by the same egress', async () => {
    const tries = new Map<string, number>()
    const greylists = toRecipients(to => {
      if (isRandomRecipient(to)) return UNKNOWN
      tries.set(to, (tries.get(to) ?? 0) + 1)
      return tries.get(to) === 1 ? GREYLISTED : YES
    })
    const { many, mx } = twoEgresses({ a: greylists, b: friendly })
    const results = await many(users(30))
    expect(results.map(({ verdict }) => verdict.reason)).toEqual(Array(30).fill('accepted_email'))
    expect(mx.asked('a')).toHaveLength(60)
    expect(mx.asked('b')).toEqual([])
  })

  test('that is greylisted moves to another egress if its own is blocked meanwhile', async () => {
    let visits = 0
    const changes: MxScript = {
      greeting: () => (visits++ === 0 ? '220 mx.a.test ESMTP' : REFUSAL),
      answer: toRecipients(to => (isRandomRecipient(to) ? UNKNOWN : GREYLISTED)),
    }
    const { many, mx } = twoEgresses({ a: changes, b: friendly })
    const results = await many(users(8))
    expect(results.map(({ verdict }) => verdict.reason)).toEqual(Array(8).fill('accepted_email'))
    expect(mx.asked('a')).toHaveLength(8)
    expect(mx.asked('b')).toHaveLength(8)
  })

  test('that does not wait still continues with another egress', async () => {
    const { engine, settled, mx } = twoEgresses({ a: BLOCKS_US, b: friendly })
    const all = async () => {
      const reasons: string[] = []
      for await (const { verdict } of engine.verifyMany(users(30), { wait: false })) {
        reasons.push(verdict.reason)
      }
      return reasons
    }
    expect(await settled(all())).toEqual(Array(30).fill('accepted_email'))
    expect(mx.asked('b')).toHaveLength(30)
  })

  test('is probed within the configured limits of an operator', async () => {
    const { many, mx } = twoEgresses(
      { a: friendly, b: friendly },
      { operators: { 'a.test': { recipientsPerSession: 5, egresses: ['b'] } } },
    )
    await many([...users(10), ...users(10, 'b.test')])
    expect(mx.of('a').dialled).toEqual([])
    const lengths = mx.of('b').sessions.map(({ to, lines }) => {
      const count = lines.filter(line => line.startsWith('RCPT TO:<user')).length
      return `${to.host} ${count}`
    })
    // The random recipient uses one slot while the domain is not tested.
    expect(lengths.toSorted()).toEqual([
      'mx.a.test 2',
      'mx.a.test 4',
      'mx.a.test 4',
      'mx.b.test 10',
    ])
  })
})

describe('an egress', () => {
  test('that does not exist cannot probe', async () => {
    const { engine } = twoEgresses({ a: friendly, b: friendly })
    const prepared = await engine.routeOne('ann@a.test')
    if ('result' in prepared) throw new Error('no inquiry')
    const { task } = prepared
    const { signal } = new AbortController()
    const sink = { probed: () => {}, later: () => {} }
    const asking = engine.probe(task.operator, [task], sink, { egress: 'c', signal })
    await expect(asking).rejects.toThrow('There is no egress "c", only a, b.')
  })

  test('has its own rate limits', async () => {
    const { engine, verify } = twoEgresses({ a: BLOCKS_US, b: friendly })
    await verify('ann@a.test')
    expect(engine.rateController('a.test', 'a').isRefused).toBe(true)
    expect(engine.rateController('a.test', 'b').isRefused).toBe(false)
    expect(engine.rateController('a.test')).toBe(engine.rateController('a.test', 'b'))
    expect(engine.egresses).toEqual(['a', 'b'])
  })
})
