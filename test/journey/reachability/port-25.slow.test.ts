import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { REFERENCE_MX_HOSTS } from '../../../src/engine/probe/outbound-reachability.ts'
import type { DomainPlan } from '../../../src/simulator/scenario.ts'
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts'
import { rowsIn } from '../../support/csv.ts'
import { emptyFolder, type Ran, startEv, towards } from '../../support/ev-process.ts'
import { type DroppingHost, startDroppingHost } from './dropping-host.ts'

// A port 25 that is closed to us, over real sockets: a firewall that drops, and one that rejects.

const COUNT = 1_000
const NOTICE = 'No mail server can be reached on port'
const HINT = 'No mail server could be reached on port'
/** Loopback addresses at which nobody listens. */
const REJECTING = '127.99.0.2'

let dropping: DroppingHost
let dropped: Simulator
let rejected: Simulator
beforeAll(async () => {
  dropping = await startDroppingHost()
  dropped = await startSimulator(everybodyAt(dropping.ip))
  rejected = await startSimulator(everybodyAt(REJECTING))
})
afterAll(async () => {
  dropping.close()
  await Promise.all([dropped.close(), rejected.close()])
})

/** Domains with exchangers of their own, and the well-known ones: all behind the same wall. */
function everybodyAt(ip: string) {
  const domains: Record<string, DomainPlan> = {}
  for (let i = 0; i < COUNT; i++) {
    domains[`a${i}.test`] = { mx: [[10, `mx${i}.test`]] }
    domains[`mx${i}.test`] = { a: [ip] }
  }
  for (const host of REFERENCE_MX_HOSTS) domains[host] = { a: [ip] }
  return { domains, hosts: { 'mx.open.test': { behavior: 'polite' } } } as const
}

/** All exchangers are at one address here, whose limit is not what is tested. */
const settings = ({ dnsAddress }: Simulator) => [
  ...towards({ dnsAddress, smtpPort: dropping.port }),
  ...['--sessions-per-operator', '200'],
]

/** Runs a list of so many domains, and tells how long it took to the notice and to the end, in ms. */
async function bulk(world: Simulator, { length = COUNT, flags = [] as string[] } = {}) {
  const home = emptyFolder()
  const rows = Array.from({ length }, (_, i) => `ann@a${i}.test`)
  writeFileSync(join(home, 'list.csv'), `email\n${rows.join('\n')}\n`)
  const startedAt = performance.now()
  const files = ['list.csv', '-o', 'out.csv', '--data-dir', 'data']
  const args = ['bulk', ...files, ...settings(world), ...flags]
  const { child, ended } = startEv(args, { home })
  let noticeMs = Number.POSITIVE_INFINITY
  child.stderr?.on('data', (text: string) => {
    if (text.includes(NOTICE)) noticeMs = Math.min(noticeMs, performance.now() - startedAt)
  })
  const ran = await ended
  return {
    ...ran,
    noticeMs,
    endMs: performance.now() - startedAt,
    rows: rowsIn(join(home, 'out.csv')),
  }
}

/** Exchangers whose addresses were looked up: no others were dialled. */
const called = (world: Simulator) =>
  [...world.counters().dns.questions.keys()].filter(question => /^mx\d+\.test A$/.test(question))

const count = ({ stderr }: Ran, text: string) => stderr.split(text).length - 1

// One after the other: their times are measured.
describe('a list of a thousand domains', () => {
  test('behind a wall that drops is told so within 15 s and ends without a timeout for each', async () => {
    const ran = await bulk(dropped)
    expect(count(ran, NOTICE), ran.stderr).toBe(1)
    expect(ran.stderr).toContain('ev doctor')
    expect(ran.noticeMs).toBeLessThan(15_000)
    // It is tried again after half a minute, as a proxy that starts anew should not cost a whole list.
    expect(ran.endMs).toBeGreaterThan(30_000)
    expect(ran.endMs).toBeLessThan(60_000)
    expect(ran.code).toBe(0)
    expect(ran.rows).toHaveLength(COUNT)
    expect(new Set(ran.rows.map(row => row.ev_reason))).toEqual(new Set(['no_connect']))
    // As many as may be dialled at the same time, and as many that were about to be when it was tried again.
    expect(called(dropped).length).toBeLessThanOrEqual(2 * 200)
  })

  test('behind a wall that drops, for which nothing is to be waited, ends soon after the notice', async () => {
    const ran = await bulk(dropped, { flags: ['--no-wait'] })
    expect(count(ran, NOTICE), ran.stderr).toBe(1)
    // Neither the half minute of a list that waits, nor 10 s for each 200 of the thousand.
    expect(ran.endMs).toBeLessThan(30_000)
    expect(ran.rows).toHaveLength(COUNT)
    expect(new Set(ran.rows.map(row => row.ev_reason))).toEqual(new Set(['no_connect']))
  })

  test('behind a wall that rejects is told so, and the rest is not dialled', async () => {
    const ran = await bulk(rejected, { flags: ['--no-wait'] })
    expect(count(ran, NOTICE), ran.stderr).toBe(1)
    expect(ran.rows).toHaveLength(COUNT)
    expect(new Set(ran.rows.map(row => row.ev_reason))).toEqual(new Set(['no_connect']))
    expect(called(rejected).length).toBeLessThan(COUNT * 0.8)
  })
})

test('a list that ends before anything is sure gives a hint', async () => {
  // Where the well-known exchangers are not to be found, a few hosts are no proof.
  const world = await startSimulator({
    domains: { 'a0.test': { mx: [[10, 'mx0.test']] }, 'mx0.test': { a: [REJECTING] } },
    hosts: {},
  })
  onTestFinished(() => world.close())
  const ran = await bulk(world, { length: 1 })
  expect([count(ran, NOTICE), count(ran, HINT), ran.code]).toEqual([0, 1, 0])
  expect(ran.stderr).toMatch(/\nev: No mail server .*"ev doctor".*\n$/)
})

describe.concurrent('ev verify', () => {
  const verify = (world: Simulator, ...args: string[]) =>
    startEv(['verify', ...args, ...settings(world)], { home: emptyFolder() }).ended

  test('of several addresses says it once, and does not wait for each', async () => {
    const ran = await verify(dropped, 'ann@a0.test', 'ann@a1.test', 'ann@a2.test', '--json')
    expect([count(ran, NOTICE), count(ran, HINT), ran.code]).toEqual([1, 0, 2])
    const results = JSON.parse(ran.stdout) as { reason: string }[]
    expect(results.map(({ reason }) => reason)).toEqual(Array(3).fill('no_connect'))
  })

  test('of one address gives a hint, in whatever form the result is wanted', async () => {
    for (const form of [[], ['--json'], ['--ndjson', '--log', 'error']]) {
      const ran = await verify(rejected, 'ann@a0.test', ...form)
      expect([count(ran, NOTICE), count(ran, HINT), ran.code]).toEqual([0, 1, 2])
      expect(ran.stderr).toMatch(/^ev: .*"ev doctor".*\n$/)
    }
  })

  test('gives none to who wants to hear nothing', async () => {
    expect(await verify(rejected, 'ann@a0.test', '--log', 'silent')).toMatchObject({ stderr: '' })
  })
})
