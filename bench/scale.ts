// Simulates a year of lists against the scheduler:
// node bench/scale.ts [--addresses N] [--workers 1,10,100,1000] [--arrivals year|at-once]
import { parseArgs } from 'node:util'
import { DAY, MINUTE, SECOND } from '../src/platform/clock.ts'
import { machine, percentile } from './engine/figures.ts'
import { type LoadResult, simulateLoad } from './scale/fixture.ts'

/** Addresses submitted in a year. */
const YEAR_ADDRESSES = 1e9
const YEAR_MS = 365 * DAY

const { values } = parseArgs({
  options: {
    addresses: { type: 'string', default: '3e6' },
    workers: { type: 'string', default: '1,10,100,1000' },
    arrivals: { type: 'string', default: 'year,at-once' },
    seed: { type: 'string', default: '20261122' },
  },
})
const HEADINGS = [
  ...['workers', 'completed after', 'addresses/s', 'lists below 1,000 rows: median / p95'],
  ...['below 100,000: median', 'longer: median', 'idle connections', 'queue tasks'],
  ...['task runs per address', 'addresses per connection', 'memory', 'duration of the simulation'],
]
const addresses = Number(values.addresses)
const workers = values.workers.split(',').map(Number)
const share = addresses / YEAR_ADDRESSES

print(
  `Machine: ${machine()}. ${count(addresses)} addresses: ${percent(share)} of a year of 1,000,000,000.`,
)
const ARRIVALS = {
  year: [`submitted over ${days(YEAR_MS * share)} days, at the rate of a year`, YEAR_MS * share],
  'at-once': ['all submitted at once', 0],
} as const
for (const arrival of values.arrivals.split(',')) {
  if (!(arrival in ARRIVALS))
    throw new Error(`--arrivals takes ${Object.keys(ARRIVALS).join(' or ')}, not ${arrival}.`)
  const [title, overMs] = ARRIVALS[arrival as keyof typeof ARRIVALS]
  print(`\n### ${title}\n`)
  print(row(HEADINGS))
  print(row(HEADINGS.map(() => '---')))
  for (const number of workers) {
    const startedAt = performance.now()
    const plan = { addresses, overMs, workers: number, seed: Number(values.seed) }
    const result = await simulateLoad(plan, getProgress(number))
    print(rowOf(number, result, (performance.now() - startedAt) / SECOND))
  }
}

function rowOf(number: number, { lists, ...result }: LoadResult, seconds: number): string {
  const waited = (rowsMin: number, rowsMax: number, part: number) =>
    span(
      percentile(
        lists
          .filter(({ rows }) => rows >= rowsMin && rows < rowsMax)
          .map(({ waitedMs }) => waitedMs),
        part,
      ),
    )
  return row([
    ...[`${number}`, `${days(result.tookMs)} days`, count(addresses / (result.tookMs / SECOND))],
    ...[`${waited(0, 1_000, 0.5)} / ${waited(0, 1_000, 0.95)}`, waited(1_000, 100_000, 0.5)],
    ...[waited(100_000, 1e9, 0.5), percent(result.idleShare), count(result.tasksMax)],
    ...[(result.runs / addresses).toFixed(3), (addresses / result.sessions).toFixed(1)],
    `${count(process.memoryUsage.rss() / 2 ** 20)} MiB`,
    `${seconds.toFixed(0)} s`,
  ])
}

/** Returns a callback that prints the progress to stderr each minute, as runs can take hours. */
function getProgress(workers: number): (answered: number) => void {
  let loggedAt = performance.now()
  return answered => {
    if (performance.now() - loggedAt < MINUTE) return
    loggedAt = performance.now()
    process.stderr.write(`${workers} workers: ${percent(answered / addresses)} completed\n`)
  }
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function count(number: number): string {
  return Math.round(number).toLocaleString('en')
}

function percent(part: number): string {
  return `${(part * 100).toFixed(1)}%`
}

function days(ms: number): string {
  return (ms / DAY).toFixed(ms < DAY ? 3 : 1)
}

function span(ms: number): string {
  const minutes = ms / SECOND / 60
  return minutes < 1
    ? `${(ms / SECOND).toFixed(0)} s`
    : minutes < 90
      ? `${minutes.toFixed(0)} min`
      : `${(minutes / 60).toFixed(1)} h`
}
