// A year of lists against the scheduler: node bench/scale.ts [--addresses N] [--workers 1,10,100,1000] [--way year|at-once]
import { parseArgs } from 'node:util'
import { DAY, MINUTE, SECOND } from '../src/platform/clock.ts'
import { machine, percentile } from './engine/figures.ts'
import { type Course, play } from './scale/fixture.ts'

/** A year of all lists there are. */
const YEAR_ADDRESSES = 1e9
const YEAR_MS = 365 * DAY

const { values } = parseArgs({
  options: {
    addresses: { type: 'string', default: '3e6' },
    workers: { type: 'string', default: '1,10,100,1000' },
    way: { type: 'string', default: 'year,at-once' },
    seed: { type: 'string', default: '20261122' },
  },
})
const HEADINGS = [
  ...['workers', 'all is done after', 'addresses/s', 'lists below 1,000 rows: median / p95'],
  ...['below 100,000: median', 'longer: median', 'idle connections', 'entries at once'],
  ...['turns per address', 'addresses per connection', 'memory of this program', 'it took'],
]
const addresses = Number(values.addresses)
const workers = values.workers.split(',').map(Number)
const share = addresses / YEAR_ADDRESSES

say(
  `Machine: ${machine()}. ${count(addresses)} addresses: ${percent(share)} of a year of 1,000,000,000.`,
)
const WAYS = {
  year: [`handed in over ${days(YEAR_MS * share)} days, as they come in a year`, YEAR_MS * share],
  'at-once': ['all handed in at once', 0],
} as const
for (const way of values.way.split(',')) {
  if (!(way in WAYS)) throw new Error(`--way is ${Object.keys(WAYS).join(' or ')}, not ${way}.`)
  const [title, overMs] = WAYS[way as keyof typeof WAYS]
  say(`\n### ${title}\n`)
  say(row(HEADINGS))
  say(row(HEADINGS.map(() => '---')))
  for (const number of workers) {
    const startedAt = performance.now()
    const plan = { addresses, overMs, workers: number, seed: Number(values.seed) }
    const course = await play(plan, getProgress(number))
    say(rowOf(number, course, (performance.now() - startedAt) / SECOND))
  }
}

function rowOf(number: number, { lists, ...course }: Course, seconds: number): string {
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
    ...[`${number}`, `${days(course.tookMs)} days`, count(addresses / (course.tookMs / SECOND))],
    ...[`${waited(0, 1_000, 0.5)} / ${waited(0, 1_000, 0.95)}`, waited(1_000, 100_000, 0.5)],
    ...[waited(100_000, 1e9, 0.5), percent(course.idleShare), count(course.entriesMax)],
    ...[(course.turns / addresses).toFixed(3), (addresses / course.sessions).toFixed(1)],
    `${count(process.memoryUsage.rss() / 2 ** 20)} MiB`,
    `${seconds.toFixed(0)} s`,
  ])
}

/** What takes hours says each minute how far it is, where the table does not go. */
function getProgress(workers: number): (answered: number) => void {
  let toldAt = performance.now()
  return answered => {
    if (performance.now() - toldAt < MINUTE) return
    toldAt = performance.now()
    process.stderr.write(`${workers} workers: ${percent(answered / addresses)} is answered\n`)
  }
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function count(number: number): string {
  return Math.round(number).toLocaleString('en')
}

function percent(part: number): string {
  return `${(part * 100).toFixed(1)} %`
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
