import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createEngine, type Engine, type EngineOptions, type Result } from '../../src/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { askedTwice } from '../../src/simulator/counters.ts'
import { type Scenario, type Simulator, startSimulator } from '../../src/simulator/simulator.ts'

// The engine against real DNS and SMTP servers on loopback: real sockets, real time.

const closing: { close(): Promise<void> }[] = []
let scenario: Scenario

beforeEach(() => {
  scenario = { mailboxes: ['ann', 'bob', 'user*'], domains: {}, hosts: {} }
})
afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close()
})

/** Adds a domain with its own MX. */
function domain(name: string, host: Scenario['hosts'][string] = { behavior: 'polite' }) {
  scenario.domains[name] = { mx: [[10, `mx.${name}`]] }
  scenario.hosts[`mx.${name}`] = host
}

async function startEngine(
  options: EngineOptions = {},
): Promise<{ simulator: Simulator; engine: Engine }> {
  const simulator = await startSimulator(scenario)
  closing.push(simulator)
  const engine = createEngine({
    dns: [simulator.dnsAddress],
    smtpPort: simulator.smtpPort,
    allowRanges: ['127.0.0.0/8'],
    specialDomains: true,
    helo: 'probe.test',
    sessionsPerSecond: 1_000,
    ...options,
  })
  closing.push(engine)
  return { simulator, engine }
}

async function collect(results: AsyncIterable<Result>): Promise<Result[]> {
  const all: Result[] = []
  for await (const result of results) all.push(result)
  return all
}

/** Waits until no session is open: servers see the end of a connection with a delay. */
async function untilIdle(simulator: Simulator) {
  for (let turn = 0; turn < 1_000 && simulator.counters().total.sessionsNow > 0; turn++) {
    await setImmediate()
  }
  return simulator.counters()
}

const reasons = (results: readonly Result[]) =>
  new Map(results.map(({ email, verdict }) => [email, verdict.reason]))

describe('one address', () => {
  test('ends its session with QUIT, and no connection is open after close', async () => {
    domain('a.test')
    const { engine, simulator } = await startEngine()
    await engine.verify('ann@a.test')
    await engine.close()
    const { total } = await untilIdle(simulator)
    expect(total).toMatchObject({ connections: 1, sessionsNow: 0, pregreet: 0, outOfOrder: 0 })
    expect(total.commands).toMatchObject({ EHLO: 1, MAIL: 1, RCPT: 2, QUIT: 1 })
  })

  test('ends within its deadline although the server sends byte by byte', async () => {
    domain('drip.test', { behavior: 'drip', ms: 50 })
    const { engine } = await startEngine({ deadlineMs: 400 })
    const startedAt = systemClock.monotonicNow()
    expect((await engine.verify('ann@drip.test')).verdict.reason).toBe('timeout')
    expect(systemClock.monotonicNow() - startedAt).toBeLessThan(700)
  })
})

describe('a list', () => {
  const BEHAVIORS = {
    'polite.test': 'polite',
    'everything.test': 'catch-all',
    'nobody.test': 'rejects-all',
    'blocks.test': 'blocks-us',
    'one.test': 'one-recipient',
    'closes.test': 'closes',
    'hangs.test': 'hangs-up',
    'resets.test': 'resets',
    'dead.test': 'dead',
    'old.test': 'helo-only',
    'plain.test': 'no-pipelining',
    'sealed.test': 'needs-starttls',
    'busy.test': 'temporary',
    'garbage.test': 'garbage',
    'endless.test': 'endless',
  } as const

  test('at servers of all behaviors has one correct result per input', async () => {
    for (const [name, behavior] of Object.entries(BEHAVIORS)) domain(name, { behavior })
    scenario.domains['broken.test'] = { fault: 'servfail' }
    scenario.domains['nomail.test'] = { mx: 'null' }
    const { engine, simulator } = await startEngine()
    const names = [...Object.keys(BEHAVIORS), 'broken.test', 'nomail.test', 'nowhere.test']
    const texts = names.flatMap(name => [`user1@${name}`, `user2@${name}`, `zoe@${name}`])
    const results = await collect(engine.verifyMany([...texts, 'nonsense'], { wait: false }))
    expect(results.map(({ email }) => email).toSorted()).toEqual([...texts, 'nonsense'].toSorted())
    const found = reasons(results)
    for (const name of ['polite.test', 'one.test', 'old.test', 'plain.test', 'sealed.test']) {
      expect([name, found.get(`user1@${name}`), found.get(`zoe@${name}`)]).toEqual([
        ...[name, 'accepted_email', 'rejected_email'],
      ])
    }
    // The server closes before a random address can be probed.
    expect(found.get('user2@closes.test')).toBe('low_deliverability')
    expect(found.get('zoe@closes.test')).toBe('rejected_email')
    expect(found.get('user1@everything.test')).toBe('catch_all')
    expect(found.get('user1@nobody.test')).toBe('rejected_email')
    expect(found.get('user1@nomail.test')).toBe('does_not_accept_mail')
    expect(found.get('user1@nowhere.test')).toBe('invalid_domain')
    const unreliable = ['blocks', 'hangs', 'resets', 'dead', 'busy', 'garbage', 'endless', 'broken']
    for (const name of unreliable) {
      for (const user of ['user1', 'user2', 'zoe']) {
        const result = results.find(({ email }) => email === `${user}@${name}.test`)
        expect(result?.verdict, result?.email).toMatchObject({ valid: false, risk: 'unknown' })
      }
    }
    await engine.close()
    const { total } = await untilIdle(simulator)
    expect(total).toMatchObject({ sessionsNow: 0, pregreet: 0, outOfOrder: 0, badLines: 0 })
  })

  test('sends only commands that a verifier may send', async () => {
    domain('a.test')
    domain('sealed.test', { behavior: 'needs-starttls' })
    const { engine, simulator } = await startEngine()
    await collect(engine.verifyMany(['ann@a.test', 'zoe@a.test', 'ann@sealed.test']))
    await engine.close()
    const allowed = ['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'NOOP', 'QUIT']
    const sent = Object.entries(simulator.counters().total.commands)
    expect(sent.filter(([verb, times]) => times > 0 && !allowed.includes(verb))).toEqual([])
  })

  test('queries the DNS once per domain and probes each mailbox once', async () => {
    domain('a.test')
    domain('b.test')
    const { engine, simulator } = await startEngine()
    const texts = Array.from({ length: 200 }, (_, i) => `user${i}@${i % 2 ? 'a' : 'b'}.test`)
    const results = await collect(engine.verifyMany(texts))
    expect(new Set(reasons(results).values())).toEqual(new Set(['accepted_email']))
    const { dns, total } = simulator.counters()
    expect([...dns.questions.values()].every(times => times === 1)).toBe(true)
    expect(askedTwice(total)).toEqual([])
    // 200 mailboxes, and a random one for each domain.
    expect(total.commands.RCPT).toBe(202)
  })

  test('never has more connections to an operator than its limits allow', async () => {
    domain('a.test', { behavior: 'slow', ms: 5 })
    const { engine, simulator } = await startEngine({
      sessionsPerOperator: 3,
      recipientsPerSession: 10,
    })
    const texts = Array.from({ length: 200 }, (_, i) => `user${i}@a.test`)
    expect(await collect(engine.verifyMany(texts))).toHaveLength(200)
    const { total } = simulator.counters()
    expect(total.sessionsPeak).toBeLessThanOrEqual(3)
    expect(total.recipientsPerConnectionMax).toBeLessThanOrEqual(11)
  })

  test('waits for greylisting to end and retries with the same sender', async () => {
    domain('grey.test', { behavior: 'greylist', seconds: 0.3 })
    const { engine, simulator } = await startEngine({ greylistDelayMs: 400 })
    const results = await collect(engine.verifyMany(['ann@grey.test', 'zoe@grey.test']))
    expect(reasons(results)).toEqual(
      new Map([
        ['ann@grey.test', 'accepted_email'],
        ['zoe@grey.test', 'rejected_email'],
      ]),
    )
    expect(simulator.counters().total.recipients.get('ann@grey.test')).toBe(2)
  })

  test('that is abandoned leaves no connection open', async () => {
    for (let i = 0; i < 10; i++) domain(`slow${i}.test`, { behavior: 'slow', ms: 10_000 })
    const { engine, simulator } = await startEngine()
    const texts = Array.from({ length: 10 }, (_, i) => `ann@slow${i}.test`)
    for await (const { email } of engine.verifyMany(['nonsense', ...texts])) {
      expect(email).toBe('nonsense')
      break
    }
    await engine.close()
    expect((await untilIdle(simulator)).total.sessionsNow).toBe(0)
  })

  test('works with a third-party SMTP server', async () => {
    domain('library.test', { behavior: 'polite', engine: 'smtp-server' })
    domain('sealed.test', { behavior: 'needs-starttls', engine: 'smtp-server' })
    const { engine } = await startEngine()
    const texts = ['library.test', 'sealed.test'].flatMap(name => [`ann@${name}`, `zoe@${name}`])
    expect(reasons(await collect(engine.verifyMany(texts)))).toEqual(
      new Map([
        ['ann@library.test', 'accepted_email'],
        ['zoe@library.test', 'rejected_email'],
        ['ann@sealed.test', 'accepted_email'],
        ['zoe@sealed.test', 'rejected_email'],
      ]),
    )
  })
})
