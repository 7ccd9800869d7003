import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { median } from '../engine/figures.ts'

const EV = join(import.meta.dirname, '../../bin/ev.js')

/** A command, and its expected exit code. */
type Start = { readonly name: string; readonly args: readonly string[]; readonly code: number }

/** The program that the others are compared with. */
const EMPTY: Start = { name: 'node -e 0', args: ['-e', '0'], code: 0 }

const STARTS: readonly Start[] = [
  EMPTY,
  { name: 'ev --version', args: [EV, '--version'], code: 0 },
  { name: 'ev help', args: [EV, 'help'], code: 0 },
  { name: 'ev verify --sandbox', args: [EV, 'verify', '--sandbox', 'valid@y.test'], code: 0 },
  // The top-level domain does not exist, so nothing is probed.
  { name: 'ev verify --no-smtp', args: [EV, 'verify', '--no-smtp', 'x@y.test'], code: 1 },
]

export type MeasuredStart = {
  readonly name: string
  readonly medianMs: number
  readonly fastestMs: number
  /** Median time above that of an empty Node program. */
  readonly extraMs: number
  /** Median time divided by that of an empty Node program. */
  readonly ratio: number
}

/** Runs the commands alternately. */
export function measureStarts(runs: number): MeasuredStart[] {
  const tookMs = new Map(STARTS.map(start => [start, [] as number[]]))
  for (const start of STARTS) startOnce(start) // Warm-up: reads the files from the disk.
  for (let run = 0; run < runs; run += 1) {
    for (const start of STARTS) tookMs.get(start)?.push(startOnce(start))
  }
  const emptyMs = median(tookMs.get(EMPTY) ?? [])
  return STARTS.map(start => {
    const all = tookMs.get(start) ?? []
    const medianMs = median(all)
    return {
      name: start.name,
      medianMs,
      fastestMs: Math.min(...all),
      extraMs: medianMs - emptyMs,
      ratio: medianMs / emptyMs,
    }
  })
}

function startOnce({ name, args, code }: Start): number {
  const startedAt = performance.now()
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  const ms = performance.now() - startedAt
  if (status !== code) throw new Error(`${name} ended with ${status}: ${stderr}`)
  return ms
}
