import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { REFERENCE_MX_HOSTS } from '../../../src/engine/probe/outbound-reachability.ts'
import type { DomainPlan } from '../../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { rowsIn } from '../../support/csv.ts'
import { emptyFolder, type Ran, simulatorFlags, startEv } from '../../support/ev-process.ts'
import { type DroppingHost, startDroppingHost } from './dropping-host.ts'

// A blocked port 25 over real sockets: a firewall that drops, and one that rejects.

const COUNT = 1_000
const NOTICE = 'No mail server can be reached on port'
const HINT = 'No mail server could be reached on port'
/** A loopback address without a listener. */
const REJECTING = '127.99.0.2'

let dropping: DroppingHost
let dropped: Simulator
let rejected: Simulator
beforeAll(async () => {
  dropping = await startDroppingHost()
  dropped = await startSimulator(allHostsAt(dropping.ip))
  rejected = await startSimulator(allHostsAt(REJECTING))
})
afterAll(async () => {
  dropping.close()
  await Promise.all([dropped.close(), rejected.close()])
})

/** Domains with their own MX hosts, and the reference hosts, all at one IP address. */
function allHostsAt(ip: string) {
  const domains: Record<string, DomainPlan> = {}
  for (let i = 0; i < COUNT; i++) {
    domains[`a${i}.test`] = { mx: [[10, `mx${i}.test`]] }
    domains[`mx${i}.test`] = { a: [ip] }
  }
  for (const host of REFERENCE_MX_HOSTS) domains[host] = { a: [ip] }
  return { domains, hosts: { 'mx.open.test': { behavior: 'polite' } } } as const
}

/** All MX hosts have one IP address, so its limit is raised. */
const settings = ({ dnsAddress }: Simulator) => [
  ...simulatorFlags({ dnsAddress, smtpPort: dropping.port }),
  ...['--sessions-per-operator', '200'],
]

/** Runs a list of `length` domains, and returns the times to the notice and to the end, in ms. */
async function bulk(simulator: Simulator, { length = COUNT, flags = [] as string[] } = {}) {
  const home = emptyFolder()
  const rows = Array.from({ length }, (_, i) => `ann@a${i}.test`)
  writeFileSync(join(home, 'list.csv'), `email\n${rows.join('\n')}\n`)
  const startedAt = performance.now()
  const files = ['list.csv', '-o', 'out.csv', '--data-dir', 'data']
  const args = ['bulk', ...files, ...settings(simulator), ...flags]
  const { child, ended } = startEv(args, { home })
  let noticeMs = Number.POSITIVE_INFINITY
  child.stderr?.on('data', (text: string) => {
    if (text.includes(NOTICE)) noticeMs = Math.min(noticeMs, performance.now() - startedAt)
  })
  const result = await ended
  return {
    ...result,
    noticeMs,
    endMs: performance.now() - startedAt,
    rows: rowsIn(join(home, 'out.csv')),
  }
}

/** Number of rows whose mail server was dialed. */
const countDialed = ({ rows }: { readonly rows: readonly Record<string, string>[] }) =>
  rows.filter(({ ev_smtp_text: text = '' }) => !text.startsWith('not probed')).length

const count = ({ stderr }: Ran, text: string) => stderr.split(text).length - 1

// These tests run sequentially because they measure times.
describe('a list of a thousand domains', () => {
  test('behind a firewall that drops prints a notice, tries the port once more and dials no other domain', async () => {
    const result = await bulk(dropped)
    expect(count(result, NOTICE), result.stderr).toBe(1)
    expect(result.stderr).toContain('ev doctor')
    // The port is tried again after half a minute, so a proxy restart does not fail the list.
    expect(result.endMs - result.noticeMs).toBeGreaterThan(25_000)
    expect(result.code).toBe(0)
    expect(result.rows).toHaveLength(COUNT)
    expect(new Set(result.rows.map(row => row.ev_reason))).toEqual(new Set(['no_connect']))
    // The hosts that may be dialed at once, and as many again when the port is tried again.
    expect(countDialed(result)).toBeLessThanOrEqual(2 * 200)
  })

  test('behind a firewall that drops ends soon after the notice with --no-wait', async () => {
    const result = await bulk(dropped, { flags: ['--no-wait'] })
    expect(count(result, NOTICE), result.stderr).toBe(1)
    expect(countDialed(result)).toBeLessThanOrEqual(3 * 200)
    expect(result.rows).toHaveLength(COUNT)
    expect(new Set(result.rows.map(row => row.ev_reason))).toEqual(new Set(['no_connect']))
  })

  test('behind a firewall that rejects prints a notice and does not dial the rest', async () => {
    const result = await bulk(rejected, { flags: ['--no-wait'] })
    expect(count(result, NOTICE), result.stderr).toBe(1)
    expect(result.rows).toHaveLength(COUNT)
    expect(new Set(result.rows.map(row => row.ev_reason))).toEqual(new Set(['no_connect']))
    expect(countDialed(result)).toBeLessThan(COUNT * 0.8)
  })
})

test('a list that ends before the cause is certain prints a hint', async () => {
  // Without the reference hosts, a few unreachable hosts prove nothing.
  const simulator = await startSimulator({
    domains: { 'a0.test': { mx: [[10, 'mx0.test']] }, 'mx0.test': { a: [REJECTING] } },
    hosts: {},
  })
  onTestFinished(() => simulator.close())
  const result = await bulk(simulator, { length: 1 })
  expect([count(result, NOTICE), count(result, HINT), result.code]).toEqual([0, 1, 0])
  expect(result.stderr).toMatch(/\nwarning: No mail server .*"ev doctor".*\n$/)
})

describe.concurrent('ev verify', () => {
  const verify = (simulator: Simulator, ...args: string[]) =>
    startEv(['verify', ...args, ...settings(simulator)], { home: emptyFolder() }).ended

  test('of several addresses prints the notice once and does not wait for each', async () => {
    const result = await verify(dropped, 'ann@a0.test', 'ann@a1.test', 'ann@a2.test', '--json')
    expect([count(result, NOTICE), count(result, HINT), result.code]).toEqual([1, 0, 2])
    const results = JSON.parse(result.stdout) as { reason: string }[]
    expect(results.map(({ reason }) => reason)).toEqual(Array(3).fill('no_connect'))
  })

  test('of one address prints a hint with any output format', async () => {
    for (const form of [[], ['--json'], ['--ndjson', '--log', 'error']]) {
      const result = await verify(rejected, 'ann@a0.test', ...form)
      expect([count(result, NOTICE), count(result, HINT), result.code]).toEqual([0, 1, 2])
      expect(result.stderr).toMatch(/^warning: .*"ev doctor".*\n$/)
    }
  })

  test('prints no hint with --log silent', async () => {
    expect(await verify(rejected, 'ann@a0.test', '--log', 'silent')).toMatchObject({ stderr: '' })
  })
})
