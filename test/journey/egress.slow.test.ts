import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import type { HostCounters } from '../../src/simulator/counters.ts'
import type { Simulator } from '../../src/simulator/simulator.ts'
import { emptyFolder, runEv } from '../support/cli.ts'
import { blockClient, CLOUD, EGRESSES, OFFICE, startHosts, users } from '../support/two-sources.ts'

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
