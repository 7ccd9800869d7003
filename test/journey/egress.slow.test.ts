import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import type { HostCounters } from '../../src/simulator/counters.ts'
import { type Scenario, type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import type { Rule } from '../../src/simulator/smtp-host/rule.ts'
import { emptyFolder, runEv } from '../support/cli.ts'

// Two source addresses of ours, over real sockets: servers tell them apart as they do out there.

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

/** Each domain has an exchanger, and so an operator, of its own. */
async function worldOf(
  hosts: Readonly<Record<string, Scenario['hosts'][string]>>,
): Promise<Simulator> {
  const scenario: Scenario = { domains: {}, hosts: {}, mailboxes: ['user*'] }
  for (const [name, plan] of Object.entries(hosts)) {
    scenario.domains[name] = { mx: [[10, `mx.${name}`]] }
    scenario.hosts[`mx.${name}`] = plan
  }
  const world = await startSimulator(scenario)
  closing.push(world)
  return world
}

const refuses = (client: string): Rule => ({
  ...{ on: 'CONNECT', client, reply: BLOCKED, end: 'close' },
})

const users = (count: number, domain: string) =>
  Array.from({ length: count }, (_, n) => `user${n}@${domain}`)

type Row = { input: { email: string }; result: { class: string; evidence: { egress: string } } }

describe('a list of some hundred addresses, two egresses, one of them refused by an operator', () => {
  const PACE = { sessions: 2, recipients: 10, perSecond: 10 }

  test('is finished through the other, and the pace is kept by both', async () => {
    const world = await worldOf({
      'left.test': { behavior: 'polite', rules: [refuses(OFFICE)] },
      'right.test': { behavior: 'slow', ms: 5 },
    })
    const home = emptyFolder()
    const texts = [...users(240, 'left.test'), ...users(240, 'right.test')]
    writeFileSync(join(home, 'list.csv'), `email\n${texts.join('\n')}\n`)
    writeFileSync(join(home, 'ev.config.json'), JSON.stringify(configTowards(world)))
    const startedAt = systemClock.monotonicNow()
    const args = ['list.csv', '-o', 'out.ndjson', '--format', 'ndjson', '--data-dir', 'data']
    const ran = await runEv(['bulk', ...args, '--config', 'ev.config.json'], { home })
    const tookMs = systemClock.monotonicNow() - startedAt
    expect(ran.code, ran.stderr).toBe(0)

    const lines = readFileSync(join(home, 'out.ndjson'), 'utf8').trimEnd().split('\n')
    const rows = lines.map(line => JSON.parse(line) as Row)
    expect(rows.map(({ input }) => input.email)).toEqual(texts)
    expect(new Set(rows.map(({ result }) => result.class))).toEqual(new Set(['deliverable']))
    const askers = (domain: string) =>
      rows
        .filter(({ input }) => input.email.endsWith(domain))
        .map(({ result }) => result.evidence.egress)
    expect(new Set(askers('left.test'))).toEqual(new Set(['cloud']))
    expect(new Set(askers('right.test'))).toEqual(new Set(['office', 'cloud']))

    const { hosts } = world.counters()
    const [left, right] = [hosts['mx.left.test'], hosts['mx.right.test']] as [
      HostCounters,
      HostCounters,
    ]
    // It was left alone as soon as it was refused.
    expect(left.clients[OFFICE]?.connections).toBeGreaterThan(0)
    expect(left.clients[OFFICE]?.connections).toBeLessThanOrEqual(PACE.sessions)
    for (const { clients } of [left, right]) {
      for (const client of [OFFICE, CLOUD]) {
        const { connections, sessionsPeak } = clients[client] ?? UNKNOWN_CALLER
        expect(sessionsPeak).toBeLessThanOrEqual(PACE.sessions)
        const allowed = PACE.sessions + (tookMs / 1_000) * PACE.perSecond
        expect(connections).toBeLessThanOrEqual(Math.ceil(allowed))
      }
    }
    // Ten in a connection, and the one that nobody has.
    expect(left.recipientsPerConnectionMax).toBeLessThanOrEqual(PACE.recipients + 1)
    expect(left.recipients.size).toBe(241)
    // 24 connections, two of them at once, ten a second.
    expect(tookMs).toBeGreaterThan(2_000)
  })

  const configTowards = ({ dnsAddress, smtpPort }: Simulator) => ({
    dns: [dnsAddress],
    'smtp-port': smtpPort,
    'allow-ranges': ['127.0.0.0/8'],
    'special-domains': true,
    'recipients-per-session': PACE.recipients,
    'sessions-per-second': PACE.perSecond,
    egresses: EGRESSES.map(({ name, sourceAddress, helo }) => ({
      ...{ name, helo, 'source-address': sourceAddress },
    })),
    operators: {
      'left.test': { 'sessions-per-operator': PACE.sessions },
      'right.test': { 'sessions-per-operator': PACE.sessions },
    },
  })
})

const UNKNOWN_CALLER = { connections: 0, sessionsPeak: 0 }
