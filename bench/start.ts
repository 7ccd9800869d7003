// Compares the start-up time of ev with that of an empty Node program: node bench/start.ts [runs]
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { machine, median } from './engine/figures.ts'

const EV = join(import.meta.dirname, '../bin/ev.js')
const RUNS = Number(process.argv[2] ?? 21)

type Start = {
  readonly name: string
  readonly args: readonly string[]
  readonly code: number
  /** Maximum time above that of the empty program. */
  readonly extraMsMax: number
}

const STARTS: readonly Start[] = [
  { name: 'node -e 0', args: ['-e', '0'], code: 0, extraMsMax: 0 },
  { name: 'ev --version', args: [EV, '--version'], code: 0, extraMsMax: 60 },
  { name: 'ev help', args: [EV, 'help'], code: 0, extraMsMax: 60 },
  {
    name: 'ev verify --sandbox',
    args: [EV, 'verify', '--sandbox', 'valid@y.test'],
    code: 0,
    extraMsMax: 150,
  },
  {
    // The top-level domain does not exist, so nothing is probed.
    name: 'ev verify --no-smtp',
    args: [EV, 'verify', '--no-smtp', 'x@y.test'],
    code: 1,
    extraMsMax: 150,
  },
]

const tookMs = new Map(STARTS.map(start => [start, [] as number[]]))
for (const start of STARTS) startOnce(start) // Warm-up: reads the files from the disk.
for (let run = 0; run < RUNS; run += 1) {
  for (const start of STARTS) tookMs.get(start)?.push(startOnce(start))
}

console.log(`Machine: ${machine()}; medians of ${RUNS} alternating starts.\n`)
console.log('| start | ms | fastest | more than node -e 0 | at most |')
console.log('|---|---|---|---|---|')
const emptyMs = medianOf(STARTS[0])
for (const start of STARTS) {
  const extraMs = medianOf(start) - emptyMs
  const fastest = Math.min(...(tookMs.get(start) ?? []))
  const cells = [start.name, whole(medianOf(start)), whole(fastest), `+${whole(extraMs)}`]
  console.log(`| ${cells.join(' | ')} | +${start.extraMsMax} |`)
  if (extraMs > start.extraMsMax) process.exitCode = 1
}

function whole(ms: number): string {
  return ms.toFixed(0)
}

function startOnce({ name, args, code }: Start): number {
  const startedAt = performance.now()
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  const ms = performance.now() - startedAt
  if (status !== code) throw new Error(`${name} ended with ${status}: ${stderr}`)
  return ms
}

function medianOf(start: Start | undefined): number {
  return median((start && tookMs.get(start)) ?? [])
}
