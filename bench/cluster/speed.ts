import { setTimeout as wait } from 'node:timers/promises'
import { worldOf } from '../../test/support/list-simulator.ts'
import { closeStand, finished, handIn, openStand } from './harness.ts'

const ROUND_TRIP_MS = 50
const WORKERS = [1, 2, 4]
/** Connections of each process, which limit it: so few that two cores carry four of them. */
const CONCURRENCY = 3
/** From one worker to two, and from two to four. */
const GAIN_MIN = 1.8

/** Addresses a second of a list that takes long enough for its beginning and end not to count, with one, two and four workers, beside SQLite in one process; gives what does not hold. */
export async function speedOf(say: (line: string) => void, rows = 24_000): Promise<string[]> {
  const title = `${rows.toLocaleString('en')} addresses at ${ROUND_TRIP_MS} ms`
  say(`\n### ${title}, ${CONCURRENCY} connections a process\n`)
  say('| database | workers | addresses/s | of the row above |\n| --- | --- | --- | --- |')
  say(`| SQLite | the service itself | ${(await measure(rows, 0)).toFixed(0)} | |`)
  const faults: string[] = []
  let before: number | null = null
  for (const workers of WORKERS) {
    const speed = await measure(rows, workers)
    const gain = before === null ? null : speed / before
    say(`| PostgreSQL | ${workers} | ${speed.toFixed(0)} | ${gain?.toFixed(2) ?? ''} |`)
    if (gain !== null && gain < GAIN_MIN) faults.push(`${workers} workers: ${gain.toFixed(2)}×`)
    before = speed
  }
  return faults
}

/** No workers: a service on SQLite. */
async function measure(rows: number, workers: number): Promise<number> {
  const list = { rows, domains: 300 }
  const stand = await openStand(workers > 0, {
    scenario: worldOf(list, ROUND_TRIP_MS),
    serverArgs: ['--limits', 'off', '--plan', 'enterprise'],
    args: [
      ...['--cache', 'off', '--sessions-per-second', '1000'],
      ...['--sessions-per-operator', '2', '--recipients-per-session', '20'],
      ...['--concurrency', `${CONCURRENCY}`],
    ],
  })
  try {
    const { egressPool } = stand
    const work = workers > 0 ? ['--work', 'off'] : []
    const server = await egressPool.start('serve', 'server', work)
    for (let n = 0; n < workers; n++) await egressPool.start('worker', `worker${n}`)
    // All have looked for work once.
    await wait(2_000)
    const startedAt = performance.now()
    await finished(egressPool, server, await handIn(egressPool, server, list))
    return rows / ((performance.now() - startedAt) / 1_000)
  } finally {
    await closeStand(stand)
  }
}
