import { runChaos } from '../../test/support/chaos.ts'
import { scenarioOf } from '../../test/support/list-simulator.ts'
import { closeHarness, openHarness } from './harness.ts'

const EVERY_MS = 5_000
const ROWS = 100_000
/** Maximum connections to one operator, over all processes. */
const SESSIONS_MAX = 2

/**
 * Runs two servers and three workers and kills one of them every five seconds. Returns the failed
 * checks.
 */
export async function measureChaos(
  print: (line: string) => void,
  rows = ROWS,
  kills = 36,
): Promise<string[]> {
  const list = { rows, domains: 200 }
  const harness = await openHarness(true, {
    scenario: scenarioOf(list, 50),
    config: { plans: { team: { requests: 1_000, per: 'second', 'credits-per-day': 10_000_000 } } },
    serverArgs: ['--plan', 'team', '--limits', 'off', '--webhook-allow-ranges', '127.0.0.0/8'],
    args: [
      ...['--concurrency', '40'],
      ...['--sessions-per-operator', `${SESSIONS_MAX}`, '--recipients-per-session', '20'],
      // Slow enough that the list outlasts the kills.
      ...['--sessions-per-second', '0.12'],
    ],
  })
  try {
    const ledger = await runChaos(harness.cluster, {
      list,
      lists: 1,
      servers: 2,
      workers: 3,
      kills,
      everyMs: EVERY_MS,
      seed: 20_261_122,
    })
    print(`\n### ${rows.toLocaleString('en')} addresses, ${kills} kills, one every five seconds\n`)
    print(JSON.stringify(ledger, null, 2))
    return [
      ...(ledger.jobs.some(({ state, done }) => state !== 'completed' || done !== rows)
        ? ['the job is not complete']
        : []),
      ...(ledger.wrongRows > 0 ? [`${ledger.wrongRows} rows are wrong`] : []),
      ...(ledger.history === rows ? [] : [`${ledger.history} rows of history`]),
      ...(ledger.events === 1 && ledger.deliveries === 1 ? [] : [`${ledger.events} events`]),
      ...(ledger.creditsHeld === 0 ? [] : [`${ledger.creditsHeld} credits are held`]),
      ...(ledger.sessionsPeak <= SESSIONS_MAX
        ? []
        : [`${ledger.sessionsPeak} sessions at one host`]),
    ]
  } finally {
    for (const fault of await closeHarness(harness)) print(fault)
  }
}
