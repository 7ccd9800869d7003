import { afterEach, describe, expect, test } from 'vitest'
import { createEngine, type Engine, type EngineOptions } from '../../src/index.ts'
import type { HostCounters } from '../../src/simulator/counters.ts'
import { type Scenario, type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import type { Rule } from '../../src/simulator/smtp-host/rule.ts'

// Two source addresses over real sockets, which servers can tell apart.

const [OFFICE, CLOUD] = ['127.0.0.2', '127.0.0.3']
const EGRESSES = [
  { name: 'office', sourceAddress: OFFICE, helo: 'office.example.com' },
  { name: 'cloud', sourceAddress: CLOUD, helo: 'cloud.example.com' },
]
const BLOCKED = '554 5.7.1 Service unavailable; Client host [{client}] blocked using bl.example'

const closing: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close()
})

/** Starts a simulator in which each domain has its own MX, and so its own operator. */
async function startHosts(
  hosts: Readonly<Record<string, Scenario['hosts'][string]>>,
): Promise<Simulator> {
  const scenario: Scenario = { domains: {}, hosts: {}, mailboxes: ['user*'] }
  for (const [name, plan] of Object.entries(hosts)) {
    scenario.domains[name] = { mx: [[10, `mx.${name}`]] }
    scenario.hosts[`mx.${name}`] = plan
  }
  const simulator = await startSimulator(scenario)
  closing.push(simulator)
  return simulator
}

const blockClient = (client: string): Rule => ({
  on: 'CONNECT',
  client,
  reply: BLOCKED,
  end: 'close',
})

const users = (count: number, domain: string) =>
  Array.from({ length: count }, (_, n) => `user${n}@${domain}`)

describe('an engine with two source addresses', () => {
  function engineFor({ dnsAddress, smtpPort }: Simulator, options: EngineOptions = {}): Engine {
    const engine = createEngine({
      dns: [dnsAddress],
      smtpPort,
      allowRanges: ['127.0.0.0/8'],
      specialDomains: true,
      egresses: EGRESSES,
      sessionsPerSecond: 1_000,
      ...options,
    })
    closing.push(engine)
    return engine
  }

  test('probes a single address from the second one if the first is blocked', async () => {
    const names = ['one.test', 'two.test', 'three.test', 'four.test', 'five.test', 'six.test']
    const rules = [blockClient(OFFICE)]
    const simulator = await startHosts(
      Object.fromEntries(names.map(name => [name, { behavior: 'polite', rules } as const])),
    )
    const engine = engineFor(simulator)
    const results = await Promise.all(names.map(name => engine.verify(`user1@${name}`)))
    expect(results.map(({ verdict }) => verdict.reason)).toEqual(names.map(() => 'accepted_email'))
    const blocked = names.filter(name => engine.egressPool.ranked(name)[0] === 'office')
    expect(blocked.length).toBeGreaterThan(0)
    for (const name of names) {
      const { clients } = simulator.counters().hosts[`mx.${name}`] as HostCounters
      expect([name, clients[CLOUD]?.connections]).toEqual([name, 1])
      expect([name, clients[OFFICE]?.connections ?? 0]).toEqual([
        ...[name, blocked.includes(name) ? 1 : 0],
      ])
    }
  })

  test('retries from the source address that was greylisted', async () => {
    const simulator = await startHosts({ 'grey.test': { behavior: 'greylist', seconds: 0.3 } })
    const operators = { 'grey.test': { sessionsPerOperator: 2 } }
    const engine = engineFor(simulator, {
      greylistDelayMs: 400,
      recipientsPerSession: 10,
      operators,
    })
    const texts = users(60, 'grey.test')
    const reasons: string[] = []
    for await (const { verdict } of engine.verifyMany(texts)) reasons.push(verdict.reason)
    expect(reasons).toEqual(texts.map(() => 'accepted_email'))
    const { recipients, clients } = simulator.counters().hosts['mx.grey.test'] as HostCounters
    // A retry from another source address would be greylisted again.
    expect(texts.map(text => recipients.get(text))).toEqual(texts.map(() => 2))
    expect(Object.keys(clients).toSorted()).toEqual([OFFICE, CLOUD])
  })
})
