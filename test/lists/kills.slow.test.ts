import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import {
  type SimulatorProcess,
  startScenarioProcess,
} from '../../src/simulator/simulator-process.ts'
import { rowsIn } from '../support/csv.ts'
import { emptyFolder, simulatorFlags, startEv } from '../support/ev-process.ts'
import { tempPostgres } from '../support/postgres-pool.ts'
import { ProcessCluster, type Unit } from '../support/process-cluster.ts'
import { xorshift } from '../support/random.ts'
import {
  countRepeated,
  IN_FLIGHT_MAX,
  LIMITS,
  REASONS,
  readReasons,
  SCENARIO,
  TEXTS,
  untilAsked,
  untilCompleted,
  vanityPeak,
  withoutKills,
} from './simulated-list.ts'

const KILLS = Number(process.env.EV_KILLS ?? 3)
const SEED = Number(process.env.EV_SEED ?? 20_261_128)

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** Points of the list at which a process is killed, as numbers of addresses. */
function killPoints(): number[] {
  const random = xorshift(SEED)
  return Array.from({ length: KILLS }, (_, n) =>
    Math.round(((n + random()) / KILLS) * TEXTS.length * 0.9),
  )
}

test('ev bulk that is killed with -9 has one correct result per row, and repeats only what was in flight', async () => {
  const simulator = await startScenarioProcess(SCENARIO)
  closing.push(() => simulator.close())
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), ['email', ...TEXTS, ''].join('\n'))
  const args = ['bulk', 'list.csv', '-o', 'out.csv', '--data-dir', 'data', '--quiet']
  const start = () => startEv([...args, ...simulatorFlags(simulator), ...LIMITS], { home })
  for (const addresses of killPoints()) {
    const running = start()
    await untilAsked(simulator, addresses)
    running.child.kill('SIGKILL')
    expect(await running.ended).toMatchObject({ signal: 'SIGKILL' })
  }
  const last = await start().ended
  expect(last.code, last.stderr).toBe(0)
  const rows = rowsIn(join(home, 'out.csv'))
  expect(rows.map(({ email }) => email)).toEqual(TEXTS)
  expect(withoutKills(rows.map(row => row.ev_reason))).toEqual(REASONS)
  await expectPolite(simulator)
})

test.each([
  ['a service', 1, (): string => ''],
  ['two members on PostgreSQL', 2, tempPostgres],
] as const)(
  '%s killed with -9 has one correct result per row, and repeats only what was in flight',
  async (_, members, createDatabase) => {
    const cluster = await ProcessCluster.open(await createDatabase(), {
      scenario: SCENARIO,
      args: LIMITS,
      serverArgs: ['--limits', 'off', '--plan', 'enterprise'],
    })
    closing.push(async () => expect(await cluster.close()).toEqual([]))
    const units: Unit[] = []
    for (let n = 0; n < members; n++) units.push(await cluster.start('serve', `server${n}`))
    const { job_id } = await cluster.client(units[0] as Unit).batch([...TEXTS])
    for (const [n, addresses] of killPoints().entries()) {
      await untilAsked(cluster.world, addresses)
      const at = n % members
      const { name } = units[at] as Unit
      await (units[at] as Unit).end('SIGKILL')
      units[at] = await cluster.start('serve', name)
    }
    const client = cluster.client(units[0] as Unit)
    await untilCompleted(client, job_id)
    expect(withoutKills(await readReasons(client, job_id))).toEqual(REASONS)
    const { processed_emails } = await client.jobs.get(job_id)
    expect(processed_emails).toBe(TEXTS.length)
    await expectPolite(cluster.world)
  },
)

async function expectPolite(simulator: SimulatorProcess): Promise<void> {
  const counters = await simulator.counters()
  expect(countRepeated(counters)).toBeLessThanOrEqual(KILLS * IN_FLIGHT_MAX)
  // Sessions of a killed process may linger a moment at the server.
  expect(vanityPeak(counters)).toBeLessThanOrEqual(4)
}
