import { cpus } from 'node:os'
import type { Measured } from './measure.ts'
import type { Variant } from './run-options.ts'

/** Returns the addresses per second of a run. */
export const speed = ({ addresses, seconds }: Measured) => addresses / seconds

const cpuPerThousand = ({ cpuMs, addresses }: Measured) => (cpuMs / addresses) * 1_000
const connections = ({ counters, addresses }: Measured) => counters.total.connections / addresses
const recipients = ({ counters, addresses }: Measured) =>
  (counters.total.commands.RCPT ?? 0) / addresses
const queries = ({ counters, addresses }: Measured) => counters.dns.total / addresses
const simulatorLoad = ({ simulatorCpuMs, seconds }: Measured) => simulatorCpuMs / 10 / seconds

/** Returns the median; of an even number of values, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  const [low = 0, high = 0] = [sorted[Math.floor(middle)], sorted[Math.ceil(middle)]]
  return (low + high) / 2
}

/** Returns the smallest value that this share of the values does not exceed. */
export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? 0

export const HEADINGS = [
  'round trip',
  'variant',
  'addresses/s',
  'CPU ms per 1,000',
  'peak RSS MiB',
  'connections per address',
  'RCPTs per address',
  'DNS queries per address',
  'simulator CPU %',
  '**ev / naive, speed**',
  '**naive / ev, CPU**',
] as const

const NAMES: Record<Variant, string> = {
  ours: 'ev',
  naive: 'naive',
  'naive-bare': 'naive, no catch-all probe',
}

/** Formats a table row: the medians of a variant and its ratios to ev. */
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
    if (first.variant === 'ours') return ''
    const ratio = median(ours.map(figure)) / median(runs.map(figure))
    return `**${(invert ? 1 / ratio : ratio).toFixed(1)}×**`
  }
  return cells([
    `${roundTripMs} ms`,
    NAMES[first.variant],
    of(speed),
    of(cpuPerThousand),
    of(run => run.peakRssMiB),
    of(connections, 3),
    of(recipients, 3),
    of(queries, 3),
    of(simulatorLoad),
    times(speed, false),
    times(cpuPerThousand, true),
  ])
}

export const head = () => `${cells(HEADINGS)}\n${cells(HEADINGS.map(() => '---'))}`

const cells = (texts: readonly string[]) => `| ${texts.join(' | ')} |`

/** Describes the machine. */
export function machine(): string {
  const all = cpus()
  return `${all.length} cores (${all[0]?.model.trim() ?? 'unknown'}), ${process.platform} ${process.arch}, Node ${process.version}`
}
