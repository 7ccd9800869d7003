// How soon ev is there, beside a Node that does nothing, in the same run: node bench/start.ts [turns]
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { machine, median } from './engine/figures.ts'

const EV = join(import.meta.dirname, '../bin/ev.js')
const TURNS = Number(process.argv[2] ?? 21)

type Start = {
  readonly name: string
  readonly args: readonly string[]
  readonly code: number
  /** What it may take longer than a Node that does nothing. */
  readonly moreMsMax: number
}

const STARTS: readonly Start[] = [
  { name: 'node -e 0', args: ['-e', '0'], code: 0, moreMsMax: 0 },
  { name: 'ev --version', args: [EV, '--version'], code: 0, moreMsMax: 60 },
  { name: 'ev help', args: [EV, 'help'], code: 0, moreMsMax: 60 },
  {
    name: 'ev verify --sandbox',
    args: [EV, 'verify', '--sandbox', 'valid@y.test'],
    code: 0,
    moreMsMax: 150,
  },
  {
    // No public DNS has that name, so nothing is asked.
    name: 'ev verify --no-smtp',
    args: [EV, 'verify', '--no-smtp', 'x@y.test'],
    code: 1,
    moreMsMax: 150,
  },
]

const tookMs = new Map(STARTS.map(start => [start, [] as number[]]))
for (const start of STARTS) once(start) // The first reads the files from the disk.
for (let turn = 0; turn < TURNS; turn += 1) {
  for (const start of STARTS) tookMs.get(start)?.push(once(start))
}

console.log(`Machine: ${machine()}; medians of ${TURNS} starts, in turn.\n`)
console.log('| start | ms | fastest | more than node -e 0 | at most |')
console.log('|---|---|---|---|---|')
const nothingMs = medianOf(STARTS[0])
for (const start of STARTS) {
  const moreMs = medianOf(start) - nothingMs
  const fastest = Math.min(...(tookMs.get(start) ?? []))
  const cells = [start.name, whole(medianOf(start)), whole(fastest), `+${whole(moreMs)}`]
  console.log(`| ${cells.join(' | ')} | +${start.moreMsMax} |`)
  if (moreMs > start.moreMsMax) process.exitCode = 1
}

function whole(ms: number): string {
  return ms.toFixed(0)
}

function once({ name, args, code }: Start): number {
  const startedAt = performance.now()
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  const ms = performance.now() - startedAt
  if (status !== code) throw new Error(`${name} ended with ${status}: ${stderr}`)
  return ms
}

function medianOf(start: Start | undefined): number {
  return median((start && tookMs.get(start)) ?? [])
}
