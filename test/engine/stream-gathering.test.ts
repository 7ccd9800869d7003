import { expect, test } from 'vitest'
import { sleep } from '../../src/platform/clock.ts'
import { createTestEngine, mail, reasonsOf } from '../support/engine.ts'
import { isRandomRecipient, knows, users } from '../support/recipients.ts'
import { remoteDial } from '../support/remote.ts'

const DOMAINS = Array.from({ length: 50 }, (_, i) => `d${i}.test`)
const ZONE = Object.assign({}, ...DOMAINS.map((name, i) => mail(name, `192.0.2.${i + 1}`)))
/** Four addresses for each domain, one domain after another in turn. */
const INTERLEAVED = [0, 1, 2, 3].flatMap(round => DOMAINS.map(name => `user${round}@${name}`))
const script = knows('user0', 'user1', 'user2', 'user3')

test('the addresses of a domain share a connection, however far apart they are', async () => {
  const { many, mx, zone } = createTestEngine({ zone: ZONE, script })
  expect(await many(INTERLEAVED)).toHaveLength(INTERLEAVED.length)
  expect(mx.sessions).toHaveLength(DOMAINS.length)
  expect(zone.asked.filter(question => question.startsWith('MX'))).toHaveLength(DOMAINS.length)
})

test('so they do if the source has pauses', async () => {
  const { many, mx, clock } = createTestEngine({ zone: ZONE, script })
  async function* source() {
    for (const [i, text] of INTERLEAVED.entries()) {
      if (i % 10 === 0) await sleep(clock, 5)
      yield text
    }
  }
  expect(await many(source())).toHaveLength(INTERLEAVED.length)
  // The first text arrives alone and does not wait.
  expect(mx.sessions.length).toBeLessThanOrEqual(DOMAINS.length + 1)
})

test('so they do if the result cache is slow', async () => {
  const get = async () => {
    await sleep(slow.clock, 150)
    return new Map()
  }
  const resultCache = { get, set: async () => {} }
  const slow = createTestEngine({ zone: ZONE, script, engine: { resultCache } })
  expect(await slow.many(INTERLEAVED)).toHaveLength(INTERLEAVED.length)
  expect(slow.mx.sessions).toHaveLength(DOMAINS.length)
})

test('a text that arrives alone has its result within 200 ms', async () => {
  const { engine, settled, clock } = createTestEngine({ zone: ZONE, script })
  async function* source() {
    for (const name of DOMAINS.slice(0, 3)) {
      yield `user0@${name}`
      await sleep(clock, 60_000)
    }
  }
  const startedAt = clock.monotonicNow()
  const iterator = engine.verifyMany(source())[Symbol.asyncIterator]()
  for (let n = 0; n < 3; n++) {
    await settled(iterator.next())
    const waitedMs = clock.monotonicNow() - startedAt - n * 60_000
    expect(waitedMs).toBeLessThanOrEqual(200)
  }
  await iterator.return?.()
})

test('a source that is never idle does not wait for its end', async () => {
  const { engine, settled, clock } = createTestEngine({ zone: ZONE, script })
  async function* source() {
    for (let n = 0; ; n++) {
      yield `user0@${DOMAINS[n % DOMAINS.length]}`
      await sleep(clock, 20)
    }
  }
  const startedAt = clock.monotonicNow()
  const iterator = engine.verifyMany(source())[Symbol.asyncIterator]()
  for (let n = 0; n < 10; n++) await settled(iterator.next())
  expect(clock.monotonicNow() - startedAt).toBeLessThan(6_000)
  await iterator.return?.()
})

test('a window that is full starts its work', async () => {
  const { many, mx } = createTestEngine({ zone: ZONE, script })
  expect(await many(INTERLEAVED, { windowMax: 100 })).toHaveLength(INTERLEAVED.length)
  // Two addresses of each domain are in the window at a time.
  expect(mx.sessions.length).toBeLessThanOrEqual(3 * DOMAINS.length)
})

test('domains on the same MX hosts share connections, those on others do not delay them', async () => {
  const hosts = ['mx1.host.test', 'mx2.host.test']
  const zone = {
    ...Object.fromEntries(
      DOMAINS.map((name, i) => [name, { MX: [[10, hosts[i % 2]]] as [number, string][] }]),
    ),
    'mx1.host.test': { A: ['192.0.2.1'] },
    'mx2.host.test': { A: ['192.0.2.2'] },
  }
  const { many, mx, recipients } = createTestEngine({
    zone,
    script,
    engine: { recipientsPerSession: 100 },
  })
  expect(await many(INTERLEAVED.slice(0, 100))).toHaveLength(100)
  expect(recipients().filter(to => !isRandomRecipient(to))).toHaveLength(100)
  // 50 recipients, and a random one for each of 25 domains, for each of two hosts.
  expect(mx.sessions).toHaveLength(2)
})

test('addresses of a domain beyond one connection share the next one', async () => {
  const { many, mx } = createTestEngine({
    script: knows(...users(45).map(to => to.split('@')[0] ?? '')),
  })
  expect(await many(users(45))).toHaveLength(45)
  expect(mx.sessions).toHaveLength(3)
})

test('the catch-all test of a domain costs no round trip of its own if another domain follows', async () => {
  const roundTripMs = 1_000
  const names = ['a', 'b', 'c', 'd'].map(name => `${name}.shared.test`)
  const zone = {
    ...Object.fromEntries(
      names.map(name => [name, { MX: [[10, 'mx.host.test']] as [number, string][] }]),
    ),
    'mx.host.test': { A: ['192.0.2.1'] },
  }
  const { many, mx, clock } = createTestEngine({
    zone,
    script,
    dial: (mx, clock) => remoteDial(mx, clock, roundTripMs),
    engine: { connectTimeoutMs: 5_000 },
  })
  const startedAt = clock.monotonicNow()
  const results = await many(names.map(name => `user0@${name}`))
  expect(results.every(({ verdict }) => verdict.reason === 'accepted_email')).toBe(true)
  expect(mx.sessions).toHaveLength(1)
  // The connection, the greeting, EHLO, one for each domain, and the last random recipient with QUIT.
  const roundTrips = (clock.monotonicNow() - startedAt) / roundTripMs
  expect(roundTrips).toBeLessThan(3 + names.length + 1.5)
})

test('recipients that a connection cannot reach are probed over another one meanwhile', async () => {
  const addresses = users(60)
  const known = knows(...addresses.filter((_, i) => i % 4 !== 3))
  const sessionsAtConnect: number[] = []
  const fixture = createTestEngine({
    script: {
      answer: async (line, session) => {
        await sleep(fixture.clock, 10)
        return known(line, session)
      },
      connect: () => {
        sessionsAtConnect.push(fixture.mx.sessions.filter(({ closed }) => !closed).length)
      },
    },
    engine: { recipientsPerSession: 100, sessionsPerOperator: 5 },
  })
  const expected = addresses.map(
    (email, i) => `${email} ${i % 4 === 3 ? 'rejected_email' : 'accepted_email'}`,
  )
  expect(reasonsOf(await fixture.many(addresses))).toEqual(expected.toSorted())
  expect(sessionsAtConnect.slice(0, 2)).toEqual([0, 1])
})
