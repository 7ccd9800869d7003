import { cpus } from 'node:os'
import type { Measured } from './measure.ts'
import type { Way } from './scenario-run.ts'

/** Addresses a second. */
export const speed = ({ addresses, seconds }: Measured) => addresses / seconds

const cpuPerThousand = ({ cpuMs, addresses }: Measured) => (cpuMs / addresses) * 1_000
const connections = ({ seen, addresses }: Measured) => seen.total.connections / addresses
const recipients = ({ seen, addresses }: Measured) => (seen.total.commands.RCPT ?? 0) / addresses
const questions = ({ seen, addresses }: Measured) => seen.dns.total / addresses
const worldLoad = ({ worldCpuMs, seconds }: Measured) => worldCpuMs / 10 / seconds

/** The middle one, or of an even number the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  const [low = 0, high = 0] = [sorted[Math.floor(middle)], sorted[Math.ceil(middle)]]
  return (low + high) / 2
}

/** The least that this share of them do not exceed. */
export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? 0

export const HEADINGS = [
  'round trip',
  'way',
  'addresses/s',
  'CPU ms per 1,000',
  'peak RSS MiB',
  'connections per address',
  'RCPTs per address',
  'DNS questions per address',
  'world’s CPU %',
  '**ours : naive, speed**',
  '**naive : ours, CPU**',
] as const

const NAMES: Record<Way, string> = {
  ours: 'ev',
  naive: 'naive',
  'naive-bare': 'naive, no catch-all question',
}

/** One row of the table: medians of one way, and what ours is to them. */
export function row(
  roundTripMs: number,
  runs: readonly Measured[],
  ours: readonly Measured[],
): string {
  const [first] = runs
  if (first === undefined) return ''
  const of = (figure: (run: Measured) => number, digits = 0) =>
    median(runs.map(figure)).toLocaleString('en', { maximumFractionDigits: digits })
  const times = (figure: (run: Measured) => number, invert: boolean) => {
    if (first.way === 'ours') return ''
    const ratio = median(ours.map(figure)) / median(runs.map(figure))
    return `**${(invert ? 1 / ratio : ratio).toFixed(1)}×**`
  }
  return cells([
    `${roundTripMs} ms`,
    NAMES[first.way],
    of(speed),
    of(cpuPerThousand),
    of(run => run.peakRssMiB),
    of(connections, 3),
    of(recipients, 3),
    of(questions, 3),
    of(worldLoad),
    times(speed, false),
    times(cpuPerThousand, true),
  ])
}

export const head = () => `${cells(HEADINGS)}\n${cells(HEADINGS.map(() => '---'))}`

const cells = (texts: readonly string[]) => `| ${texts.join(' | ')} |`

/** What it ran on. */
export function machine(): string {
  const all = cpus()
  return `${all.length} cores (${all[0]?.model.trim() ?? 'unknown'}), ${process.platform} ${process.arch}, Node ${process.version}`
}
