import { setTimeout as wait } from 'node:timers/promises'
import { scenarioOf } from '../../test/support/list-simulator.ts'
import { closeHarness, cpuMsOf, openHarness, submitList, waitUntilCompleted } from './harness.ts'

/**
 * Compares the CPU time per 1,000 addresses of a service on SQLite with that of server, worker and
 * PostgreSQL. The simulator has no latency.
 */
export async function measureCost(print: (line: string) => void, rows = 20_000): Promise<string[]> {
  print(`\n### CPU ms per 1,000 addresses, list of ${rows.toLocaleString('en')}\n`)
  print('| database | ev | PostgreSQL | together | of SQLite |\n| --- | --- | --- | --- | --- |')
  const sqlite = await measure(rows, false)
  print(`| SQLite | ${sqlite.ev.toFixed(0)} | | ${sqlite.ev.toFixed(0)} | |`)
  const { ev, postgres } = await measure(rows, true)
  const ratio = ((ev + postgres) / sqlite.ev).toFixed(2)
  const all = [ev, postgres, ev + postgres].map(ms => ms.toFixed(0))
  print(`| PostgreSQL | ${all.join(' | ')} | ${ratio}× |`)
  return []
}

async function measure(rows: number, onPostgres: boolean) {
  const list = { rows, domains: 300 }
  const harness = await openHarness(onPostgres, {
    scenario: scenarioOf(list, 0),
    serverArgs: ['--limits', 'off', '--plan', 'enterprise'],
    args: [
      ...['--cache', 'off', '--sessions-per-second', '1000'],
      ...['--recipients-per-session', '20', '--concurrency', '50'],
    ],
  })
  try {
    const { cluster, postgres } = harness
    const server = await cluster.start('serve', 'server', onPostgres ? ['--work', 'off'] : [])
    const units = onPostgres ? [server, await cluster.start('worker', 'worker')] : [server]
    const cpuMs = () => ({
      ev: units.reduce((sum, { child }) => sum + cpuMsOf(child.pid ?? 0), 0),
      postgres: postgres === null ? 0 : cpuMsOf(postgres.pid),
    })
    await wait(2_000)
    const before = cpuMs()
    await waitUntilCompleted(cluster, server, await submitList(cluster, server, list))
    const after = cpuMs()
    const thousands = rows / 1_000
    return {
      ev: (after.ev - before.ev) / thousands,
      postgres: (after.postgres - before.postgres) / thousands,
    }
  } finally {
    await closeHarness(harness)
  }
}
