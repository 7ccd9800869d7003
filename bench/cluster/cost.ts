import { setTimeout as wait } from 'node:timers/promises'
import { worldOf } from '../../test/support/list-simulator.ts'
import { closeStand, cpuMsOf, finished, handIn, openStand } from './harness.ts'

/** Processor time per 1,000 addresses: a service on SQLite, and server, worker and PostgreSQL; no distance. */
export async function costOf(say: (line: string) => void, rows = 20_000): Promise<string[]> {
  say(`\n### CPU ms per 1,000 addresses, list of ${rows.toLocaleString('en')}\n`)
  say('| database | ev | PostgreSQL | together | of SQLite |\n| --- | --- | --- | --- | --- |')
  const sqlite = await measure(rows, false)
  say(`| SQLite | ${sqlite.ev.toFixed(0)} | | ${sqlite.ev.toFixed(0)} | |`)
  const { ev, postgres } = await measure(rows, true)
  const ratio = ((ev + postgres) / sqlite.ev).toFixed(2)
  const all = [ev, postgres, ev + postgres].map(ms => ms.toFixed(0))
  say(`| PostgreSQL | ${all.join(' | ')} | ${ratio}× |`)
  return []
}

async function measure(rows: number, onPostgres: boolean) {
  const list = { rows, domains: 300 }
  const stand = await openStand(onPostgres, {
    scenario: worldOf(list, 0),
    serverArgs: ['--limits', 'off', '--plan', 'enterprise'],
    args: [
      ...['--cache', 'off', '--sessions-per-second', '1000'],
      ...['--recipients-per-session', '20', '--concurrency', '50'],
    ],
  })
  try {
    const { egressPool, postgres } = stand
    const server = await egressPool.start('serve', 'server', onPostgres ? ['--work', 'off'] : [])
    const units = onPostgres ? [server, await egressPool.start('worker', 'worker')] : [server]
    const cpuMs = () => ({
      ev: units.reduce((sum, { child }) => sum + cpuMsOf(child.pid ?? 0), 0),
      postgres: postgres === null ? 0 : cpuMsOf(postgres.pid),
    })
    await wait(2_000)
    const before = cpuMs()
    await finished(egressPool, server, await handIn(egressPool, server, list))
    const after = cpuMs()
    const thousands = rows / 1_000
    return {
      ev: (after.ev - before.ev) / thousands,
      postgres: (after.postgres - before.postgres) / thousands,
    }
  } finally {
    await closeStand(stand)
  }
}
