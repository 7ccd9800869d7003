import { describe, expect, test } from 'vitest'
import { createEngine, type Engine, type EngineOptions } from '../../src/index.ts'
import type { HostCounters } from '../../src/simulator/counters.ts'
import type { Simulator } from '../../src/simulator/simulator.ts'
import { onFileFinished } from '../support/cleanup.ts'
import { blockClient, CLOUD, EGRESSES, OFFICE, startHosts, users } from '../support/two-sources.ts'

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
    onFileFinished(() => engine.close())
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
