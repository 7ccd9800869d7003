import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import type { HostCounters } from '../../src/simulator/counters.ts'
import { type Scenario, type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import type { Rule } from '../../src/simulator/smtp-host/rule.ts'
import { emptyFolder, runEv } from '../support/cli.ts'

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

type Row = { input: { email: string }; result: { class: string; evidence: { egress: string } } }

describe('a list with two egresses, one of which an operator blocks', () => {
  const LIMITS = { sessions: 2, recipients: 10, perSecond: 10 }

  test('is finished through the other egress, and both respect the rate limits', async () => {
    const simulator = await startHosts({
      'left.test': { behavior: 'polite', rules: [blockClient(OFFICE)] },
      'right.test': { behavior: 'slow', ms: 5 },
    })
    const home = emptyFolder()
    const texts = [...users(240, 'left.test'), ...users(240, 'right.test')]
    writeFileSync(join(home, 'list.csv'), `email\n${texts.join('\n')}\n`)
    writeFileSync(join(home, 'ev.config.json'), JSON.stringify(configTowards(simulator)))
    const startedAt = systemClock.monotonicNow()
    const args = ['list.csv', '-o', 'out.ndjson', '--format', 'ndjson', '--data-dir', 'data']
    const run = await runEv(['bulk', ...args, '--config', 'ev.config.json'], { home })
    const tookMs = systemClock.monotonicNow() - startedAt
    expect(run.code, run.stderr).toBe(0)

    const lines = readFileSync(join(home, 'out.ndjson'), 'utf8').trimEnd().split('\n')
    const rows = lines.map(line => JSON.parse(line) as Row)
    expect(rows.map(({ input }) => input.email)).toEqual(texts)
    expect(new Set(rows.map(({ result }) => result.class))).toEqual(new Set(['deliverable']))
    const listEgresses = (domain: string) =>
      rows
        .filter(({ input }) => input.email.endsWith(domain))
        .map(({ result }) => result.evidence.egress)
    expect(new Set(listEgresses('left.test'))).toEqual(new Set(['cloud']))
    expect(new Set(listEgresses('right.test'))).toEqual(new Set(['office', 'cloud']))

    const { hosts } = simulator.counters()
    const [left, right] = [hosts['mx.left.test'], hosts['mx.right.test']] as [
      HostCounters,
      HostCounters,
    ]
    // The operator is not dialed again from the blocked egress.
    expect(left.clients[OFFICE]?.connections).toBeGreaterThan(0)
    expect(left.clients[OFFICE]?.connections).toBeLessThanOrEqual(LIMITS.sessions)
    for (const { clients } of [left, right]) {
      for (const client of [OFFICE, CLOUD]) {
        const { connections, sessionsPeak } = clients[client] ?? NO_CONNECTIONS
        expect(sessionsPeak).toBeLessThanOrEqual(LIMITS.sessions)
        const allowed = LIMITS.sessions + (tookMs / 1_000) * LIMITS.perSecond
        expect(connections).toBeLessThanOrEqual(Math.ceil(allowed))
      }
    }
    // Ten recipients per connection, and the random one of the catch-all probe.
    expect(left.recipientsPerConnectionMax).toBeLessThanOrEqual(LIMITS.recipients + 1)
    expect(left.recipients.size).toBe(241)
    // 24 connections, two at once, ten per second.
    expect(tookMs).toBeGreaterThan(2_000)
  })

  const configTowards = ({ dnsAddress, smtpPort }: Simulator) => ({
    dns: [dnsAddress],
    'smtp-port': smtpPort,
    'allow-ranges': ['127.0.0.0/8'],
    'special-domains': true,
    'recipients-per-session': LIMITS.recipients,
    'sessions-per-second': LIMITS.perSecond,
    egresses: EGRESSES.map(({ name, sourceAddress, helo }) => ({
      name,
      helo,
      'source-address': sourceAddress,
    })),
    operators: {
      'left.test': { 'sessions-per-operator': LIMITS.sessions },
      'right.test': { 'sessions-per-operator': LIMITS.sessions },
    },
  })
})

const NO_CONNECTIONS = { connections: 0, sessionsPeak: 0 }
