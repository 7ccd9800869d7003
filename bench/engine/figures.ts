import { cpus } from 'node:os'
import type { Measured } from './measure.ts'
import type { Program } from './run-options.ts'
import type { Shape } from './scenario.ts'

/** Share of a core from which the simulator counts as the limit and not its client. */
const BUSY_SHARE = 0.9

const speed = ({ addresses, seconds }: Measured) => addresses / seconds
const cpuSeconds = ({ cpuMs }: Measured) => cpuMs / 1_000
const simulatorShare = ({ simulatorCpuMs, seconds }: Measured) => simulatorCpuMs / 1_000 / seconds

/** Whether the simulator limited the speed of the runs. */
export const isSimulatorBusy = (runs: readonly Measured[]) =>
  median(runs.map(simulatorShare)) >= BUSY_SHARE

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

const HEADINGS = [
  'list',
  'round trip',
  'program',
  'addresses/s',
  'CPU s',
  'peak RSS MiB',
  'connections',
  'DNS questions',
  'simulator CPU s',
  '**speed / bare probe**',
  '**CPU / bare probe**',
  'speed / probe in C',
  'CPU / probe in C',
] as const

export const PROGRAM_NAMES: Readonly<Record<Program, string>> = {
  bare: 'bare probe',
  c: 'bare probe in C',
  engine: '`verifyMany`',
  bulk: '`ev bulk`',
}

/**
 * Formats a table row: the medians of a program, and its ratios to the bare probe and to the one in
 * C, which has no runs without a compiler.
 */
export function row(
  shape: Shape,
  roundTripMs: number,
  runs: readonly Measured[],
  bareRuns: readonly Measured[],
  cRuns: readonly Measured[],
): string {
  const of = (figure: (run: Measured) => number, digits = 0) =>
    median(runs.map(figure)).toLocaleString('en', { maximumFractionDigits: digits })
  const ratio = (figure: (run: Measured) => number, others: readonly Measured[]) =>
    runs === others || others.length === 0
      ? ''
      : (median(runs.map(figure)) / median(others.map(figure))).toFixed(2)
  const bold = (text: string) => (text === '' ? '' : `**${text}**`)
  return cells([
    shape.name,
    `${roundTripMs} ms`,
    PROGRAM_NAMES[runs[0]?.program ?? 'bare'],
    of(speed),
    of(cpuSeconds, 2),
    of(run => run.peakRssMiB),
    of(run => run.counters.total.connections),
    of(run => run.counters.dns.total),
    `${of(run => run.simulatorCpuMs / 1_000, 2)}${isSimulatorBusy(runs) ? ' *' : ''}`,
    bold(ratio(speed, bareRuns)),
    bold(ratio(cpuSeconds, bareRuns)),
    ratio(speed, cRuns),
    ratio(cpuSeconds, cRuns),
  ])
}

export const head = () => `${cells(HEADINGS)}\n${cells(HEADINGS.map(() => '---'))}`

const cells = (texts: readonly string[]) => `| ${texts.join(' | ')} |`

/** Describes the machine. */
export function machine(): string {
  const all = cpus()
  return `${all.length} cores (${all[0]?.model.trim() ?? 'unknown'}), ${process.platform} ${process.arch}, Node ${process.version}`
}
