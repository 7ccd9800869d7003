import { setTimeout as wait } from 'node:timers/promises'
import { scenarioOf } from '../../test/support/list-simulator.ts'
import { closeHarness, openHarness, submitList, waitUntilCompleted } from './harness.ts'

const ROUND_TRIP_MS = 50
const WORKERS = [1, 2, 4]
/** Connections of each process: few enough that they are the limit, and not the two cores. */
const CONCURRENCY = 3
/** Minimum speedup from one worker to two, and from two to four. */
const GAIN_MIN = 1.8

/**
 * Measures addresses per second with one, two and four workers, and with SQLite in one process. The
 * list is long enough that start and end do not matter. Returns the failed checks.
 */
export async function measureSpeed(
  print: (line: string) => void,
  rows = 24_000,
): Promise<string[]> {
  const title = `${rows.toLocaleString('en')} addresses at ${ROUND_TRIP_MS} ms`
  print(`\n### ${title}, ${CONCURRENCY} connections a process\n`)
  print('| database | workers | addresses/s | of the row above |\n| --- | --- | --- | --- |')
  print(`| SQLite | the service itself | ${(await measure(rows, 0)).toFixed(0)} | |`)
  const faults: string[] = []
  let before: number | null = null
  for (const workers of WORKERS) {
    const speed = await measure(rows, workers)
    const gain = before === null ? null : speed / before
    print(`| PostgreSQL | ${workers} | ${speed.toFixed(0)} | ${gain?.toFixed(2) ?? ''} |`)
    if (gain !== null && gain < GAIN_MIN) faults.push(`${workers} workers: ${gain.toFixed(2)}×`)
    before = speed
  }
  return faults
}

/** Without workers, measures a service on SQLite. */
async function measure(rows: number, workers: number): Promise<number> {
  const list = { rows, domains: 300 }
  const harness = await openHarness(workers > 0, {
    scenario: scenarioOf(list, ROUND_TRIP_MS),
    serverArgs: ['--limits', 'off', '--plan', 'enterprise'],
    args: [
      ...['--cache', 'off', '--sessions-per-second', '1000'],
      ...['--sessions-per-operator', '2', '--recipients-per-session', '20'],
      ...['--concurrency', `${CONCURRENCY}`],
    ],
  })
  try {
    const { cluster } = harness
    const work = workers > 0 ? ['--work', 'off'] : []
    const server = await cluster.start('serve', 'server', work)
    for (let n = 0; n < workers; n++) await cluster.start('worker', `worker${n}`)
    // Wait until all workers have polled once.
    await wait(2_000)
    const startedAt = performance.now()
    await waitUntilCompleted(cluster, server, await submitList(cluster, server, list))
    return rows / ((performance.now() - startedAt) / 1_000)
  } finally {
    await closeHarness(harness)
  }
}
