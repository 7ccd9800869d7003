import { expect, test } from 'vitest'
import { runChaos } from '../support/chaos.ts'
import { scenarioOf } from '../support/list-simulator.ts'
import { tempPostgres } from '../support/postgres-pool.ts'
import { ProcessCluster } from '../support/process-cluster.ts'

/** More kills find more faults, and take longer. */
const KILLS = Number(process.env.EV_KILLS ?? 4)
const SEED = Number(process.env.EV_SEED ?? 20_261_122)
const LIST = { rows: 3_000, domains: 40 }
const LISTS = 2
/** Rows that a process may have in flight, plus results that are not committed yet. */
const IN_FLIGHT_MAX = 20 * 10 + 200

test('servers and workers on one PostgreSQL lose nothing and do nothing twice when each is killed with -9', async () => {
  const cluster = await ProcessCluster.open(await tempPostgres(), {
    scenario: scenarioOf(LIST, 30),
    config: CONFIG,
    serverArgs: ['--plan', 'team', '--webhook-allow-ranges', '127.0.0.0/8'],
    args: [
      ...['--concurrency', '20'],
      ...['--sessions-per-operator', '2', '--recipients-per-session', '10'],
      ...['--sessions-per-second', '10'],
    ],
  })
  try {
    const rows = LIST.rows * LISTS
    const {
      seconds: _,
      askedAgain,
      ...ledger
    } = await runChaos(cluster, {
      list: LIST,
      lists: LISTS,
      servers: 2,
      workers: 2,
      kills: KILLS,
      everyMs: 4_000,
      seed: SEED,
    })
    const completed = { state: 'completed', done: LIST.rows, total: LIST.rows }
    expect(ledger).toEqual({
      jobs: Array.from({ length: LISTS }, () => completed),
      wrongRows: 0,
      history: rows,
      events: LISTS,
      deliveries: LISTS,
      creditsUsed: expect.any(Number),
      creditsHeld: 0,
      sessionsPeak: 2,
    })
    expect(askedAgain).toBeLessThanOrEqual(KILLS * IN_FLIGHT_MAX + LIST.rows * (LISTS - 1))
  } finally {
    expect(await cluster.close()).toEqual([])
  }
})

const CONFIG = {
  'ip-limits': { 'single-per-minute': 100_000, 'bulk-per-hour': 100_000 },
  plans: { team: { requests: 1_000, per: 'second', 'credits-per-day': 1_000_000 } },
}
