import { afterEach, expect, test } from 'vitest'
import { createEngine, type Engine, type EngineOptions } from '../../src/index.ts'
import type { Scenario } from '../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'

const IP = '127.31.0.1'
const POLICY = '550 5.7.1 Denied by a policy of this organization'

const closing: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of closing.splice(0)) await one.close()
})

/** Starts domains with one MX name each, all of which resolve to one server. */
async function startServer(
  names: readonly string[],
  hostOf: (name: string) => string,
  rules: Scenario['hosts'][string]['rules'] = [],
): Promise<Simulator> {
  const simulator = await startSimulator({
    roundTripMs: 5,
    domains: Object.fromEntries(
      names.flatMap(name => [
        [name, { mx: [[10, hostOf(name)]] as const }],
        [hostOf(name), { a: [IP] }],
      ]),
    ),
    hosts: { 'server.test': { behavior: 'polite', ip: IP, rules } },
  })
  closing.push(simulator)
  return simulator
}

function engineFor({ dnsAddress, smtpPort }: Simulator, options: EngineOptions = {}): Engine {
  const engine = createEngine({
    dns: [dnsAddress],
    smtpPort,
    allowRanges: ['127.0.0.0/8'],
    specialDomains: true,
    helo: 'probe.test',
    sessionsPerSecond: 50,
    ...options,
  })
  closing.unshift(engine)
  return engine
}

async function reasonsOf(results: AsyncIterable<{ email: string; verdict: { reason: string } }>) {
  const reasons = new Map<string, string>()
  for await (const { email, verdict } of results) reasons.set(email, verdict.reason)
  return reasons
}

const namesOf = (word: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${word}${n}.test`)

test('many MX names of one server share the limits of one operator, in lists and single verifications', async () => {
  const names = namesOf('vanity', 60)
  const simulator = await startServer(names, name => `mx.${name}`)
  const engine = engineFor(simulator, { deadlineMs: 60_000 })
  const [list, singles] = [names.slice(0, 40), names.slice(40)]
  const verifications = singles.map(name => engine.verify(`user1@${name}`))
  const reasons = await reasonsOf(engine.verifyMany(list.map(name => `user1@${name}`)))
  for (const { email, verdict } of await Promise.all(verifications))
    reasons.set(email, verdict.reason)
  expect(reasons.size).toBe(60)
  expect(new Set(reasons.values())).toEqual(new Set(['accepted_email']))
  const { sessionsPeak, connectionsPerSecondPeak } = simulator.counters().total
  expect(sessionsPeak).toBeLessThanOrEqual(2)
  expect(connectionsPerSecondPeak).toBeLessThanOrEqual(50 + 2)
})

test('a tenant that blocks probes does not affect the other tenants of its operator', async () => {
  const names = namesOf('tenant', 20)
  const [blocking = '', ...others] = names
  const simulator = await startServer(
    names,
    name => `${name.replace('.', '-')}.mail.protection.outlook.com`,
    [{ on: 'RCPT', to: `*@${blocking}`, reply: POLICY }],
  )
  const engine = engineFor(simulator, { sessionsPerOperator: 1 })
  const blocked = Array.from({ length: 6 }, (_, n) => `user${n}@${blocking}`)
  const addresses = [...blocked, ...others.map(name => `user1@${name}`)]
  const reasons = await reasonsOf(engine.verifyMany(addresses, { wait: false }))
  expect(blocked.map(email => reasons.get(email))).toEqual(blocked.map(() => 'probe_blocked'))
  expect(others.map(name => reasons.get(`user1@${name}`))).toEqual(
    others.map(() => 'accepted_email'),
  )
  expect(simulator.counters().total.commands.RCPT).toBeLessThanOrEqual(3 + 2 * 19)
})
