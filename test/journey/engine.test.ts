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

/** Adds a domain with an exchanger of its own. */
function domain(name: string, host: Scenario['hosts'][string] = { behavior: 'polite' }) {
  scenario.domains[name] = { mx: [[10, `mx.${name}`]] }
  scenario.hosts[`mx.${name}`] = host
}

async function services(
  options: EngineOptions = {},
): Promise<{ world: Simulator; engine: Engine }> {
  const world = await startSimulator(scenario)
  closing.push(world)
  const engine = createEngine({
    dns: [world.dnsAddress],
    smtpPort: world.smtpPort,
    allowRanges: ['127.0.0.0/8'],
    specialDomains: true,
    helo: 'probe.test',
    sessionsPerSecond: 1_000,
    ...options,
  })
  closing.push(engine)
  return { world, engine }
}

async function gathered(results: AsyncIterable<Result>): Promise<Result[]> {
  const all: Result[] = []
  for await (const result of results) all.push(result)
  return all
}

/** Servers hear of a connection's end some turns of the event loop later. */
async function deserted(world: Simulator) {
  for (let turn = 0; turn < 1_000 && world.counters().total.sessionsNow > 0; turn++) {
    await setImmediate()
  }
  return world.counters()
}

const reasons = (results: readonly Result[]) =>
  new Map(results.map(({ email, verdict }) => [email, verdict.reason]))

describe('one address', () => {
  test('leaves with a QUIT, and nothing is open after close', async () => {
    domain('a.test')
    const { engine, world } = await services()
    await engine.verify('ann@a.test')
    await engine.close()
    const { total } = await deserted(world)
    expect(total).toMatchObject({ connections: 1, sessionsNow: 0, pregreet: 0, outOfOrder: 0 })
    expect(total.commands).toMatchObject({ EHLO: 1, MAIL: 1, RCPT: 2, QUIT: 1 })
  })

  test('ends within its deadline though every byte trickles', async () => {
    domain('drip.test', { behavior: 'drip', ms: 50 })
    const { engine } = await services({ deadlineMs: 400 })
    const startedAt = systemClock.monotonicNow()
    expect((await engine.verify('ann@drip.test')).verdict.reason).toBe('timeout')
    expect(systemClock.monotonicNow() - startedAt).toBeLessThan(700)
  })
})

describe('a list', () => {
  const TEMPERS = {
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

  test('of servers of all tempers: each input has one result, and each result is right', async () => {
    for (const [name, behavior] of Object.entries(TEMPERS)) domain(name, { behavior })
    scenario.domains['broken.test'] = { fault: 'servfail' }
    scenario.domains['nomail.test'] = { mx: 'null' }
    const { engine, world } = await services()
    const names = [...Object.keys(TEMPERS), 'broken.test', 'nomail.test', 'nowhere.test']
    const texts = names.flatMap(name => [`user1@${name}`, `user2@${name}`, `zoe@${name}`])
    const results = await gathered(engine.verifyMany([...texts, 'nonsense'], { wait: false }))
    expect(results.map(({ email }) => email).toSorted()).toEqual([...texts, 'nonsense'].toSorted())
    const found = reasons(results)
    for (const name of ['polite.test', 'one.test', 'old.test', 'plain.test', 'sealed.test']) {
      expect([name, found.get(`user1@${name}`), found.get(`zoe@${name}`)]).toEqual([
        ...[name, 'accepted_email', 'rejected_email'],
      ])
    }
    // The server closes before it can be asked about a random name.
    expect(found.get('user2@closes.test')).toBe('low_deliverability')
    expect(found.get('zoe@closes.test')).toBe('rejected_email')
    expect(found.get('user1@everything.test')).toBe('catch_all')
    expect(found.get('user1@nobody.test')).toBe('rejected_email')
    expect(found.get('user1@nomail.test')).toBe('does_not_accept_mail')
    expect(found.get('user1@nowhere.test')).toBe('invalid_domain')
    const troubled = ['blocks', 'hangs', 'resets', 'dead', 'busy', 'garbage', 'endless', 'broken']
    for (const name of troubled) {
      for (const user of ['user1', 'user2', 'zoe']) {
        const result = results.find(({ email }) => email === `${user}@${name}.test`)
        expect(result?.verdict, result?.email).toMatchObject({ valid: false, risk: 'unknown' })
      }
    }
    await engine.close()
    const { total } = await deserted(world)
    expect(total).toMatchObject({ sessionsNow: 0, pregreet: 0, outOfOrder: 0, badLines: 0 })
  })

  test('speaks nothing that a verifier must not', async () => {
    domain('a.test')
    domain('sealed.test', { behavior: 'needs-starttls' })
    const { engine, world } = await services()
    await gathered(engine.verifyMany(['ann@a.test', 'zoe@a.test', 'ann@sealed.test']))
    await engine.close()
    const allowed = ['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'NOOP', 'QUIT']
    const spoken = Object.entries(world.counters().total.commands)
    expect(spoken.filter(([verb, times]) => times > 0 && !allowed.includes(verb))).toEqual([])
  })

  test('asks the DNS once for each domain and nobody twice for a mailbox', async () => {
    domain('a.test')
    domain('b.test')
    const { engine, world } = await services()
    const texts = Array.from({ length: 200 }, (_, i) => `user${i}@${i % 2 ? 'a' : 'b'}.test`)
    const results = await gathered(engine.verifyMany(texts))
    expect(new Set(reasons(results).values())).toEqual(new Set(['accepted_email']))
    const { dns, total } = world.counters()
    expect([...dns.questions.values()].every(times => times === 1)).toBe(true)
    expect(askedTwice(total)).toEqual([])
    // 200 mailboxes, and for each domain one that nobody has.
    expect(total.commands.RCPT).toBe(202)
  })

  test('never has more connections to an operator than its pace allows', async () => {
    domain('a.test', { behavior: 'slow', ms: 5 })
    const { engine, world } = await services({ sessionsPerOperator: 3, recipientsPerSession: 10 })
    const texts = Array.from({ length: 200 }, (_, i) => `user${i}@a.test`)
    expect(await gathered(engine.verifyMany(texts))).toHaveLength(200)
    const { total } = world.counters()
    expect(total.sessionsPeak).toBeLessThanOrEqual(3)
    expect(total.recipientsPerConnectionMax).toBeLessThanOrEqual(11)
  })

  test('waits for a greylist and asks again, from the same sender', async () => {
    domain('grey.test', { behavior: 'greylist', seconds: 0.3 })
    const { engine, world } = await services({ greylistDelayMs: 400 })
    const results = await gathered(engine.verifyMany(['ann@grey.test', 'zoe@grey.test']))
    expect(reasons(results)).toEqual(
      new Map([
        ['ann@grey.test', 'accepted_email'],
        ['zoe@grey.test', 'rejected_email'],
      ]),
    )
    expect(world.counters().total.recipients.get('ann@grey.test')).toBe(2)
  })

  test('that nobody wants any more leaves no connection open', async () => {
    for (let i = 0; i < 10; i++) domain(`slow${i}.test`, { behavior: 'slow', ms: 10_000 })
    const { engine, world } = await services()
    const texts = Array.from({ length: 10 }, (_, i) => `ann@slow${i}.test`)
    for await (const { email } of engine.verifyMany(['nonsense', ...texts])) {
      expect(email).toBe('nonsense')
      break
    }
    await engine.close()
    expect((await deserted(world)).total.sessionsNow).toBe(0)
  })

  test('is understood by a server that others wrote', async () => {
    domain('library.test', { behavior: 'polite', engine: 'smtp-server' })
    domain('sealed.test', { behavior: 'needs-starttls', engine: 'smtp-server' })
    const { engine } = await services()
    const texts = ['library.test', 'sealed.test'].flatMap(name => [`ann@${name}`, `zoe@${name}`])
    expect(reasons(await gathered(engine.verifyMany(texts)))).toEqual(
      new Map([
        ['ann@library.test', 'accepted_email'],
        ['zoe@library.test', 'rejected_email'],
        ['ann@sealed.test', 'accepted_email'],
        ['zoe@sealed.test', 'rejected_email'],
      ]),
    )
  })
})
