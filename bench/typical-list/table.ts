import { MINUTE, SECOND } from '../../src/platform/clock.ts'
import { percentile } from '../engine/figures.ts'
import type { Measured } from './measure.ts'
import type { HarvestRule } from './providers.ts'

const HEADINGS = [
  ...['strategy', '50%', '90%', '99%', 'unknown', 'wrong', 'connections'],
  ...['refused', 'blocks', 'on the block list'],
]

/** The description of a punishment in a table. */
export const RULE_TITLES: Readonly<Record<HarvestRule, string>> = {
  row: 'Providers block a client after 20 unknown recipients in a row (10 at the strict ones)',
  share:
    'Providers block a client if half of the last 40 recipients are unknown (20 at the strict ones)',
}

/** Formats the strategies as the lines of a table. */
export function formatStrategies(all: readonly Measured[]): string[] {
  return [HEADINGS, HEADINGS.map(() => '---'), ...all.map(cellsOf)].map(toRow)
}

/** Formats what each provider counted. */
export function formatProviders({ providers }: Measured): string[] {
  const headings = ['provider', 'connections', 'recipients', 'refused', 'blocks']
  const rows = providers.map(({ name, connections, recipients, refused, blocks }) => [
    name,
    ...[connections, recipients, refused, blocks].map(group),
  ])
  return [headings, headings.map(() => '---'), ...rows].map(toRow)
}

function cellsOf(one: Measured): string[] {
  const { name, tookMs, answers, addresses, wrong, connections, refused, blocks, listings } = one
  return [
    name,
    ...[0.5, 0.9, 0.99].map(share => formatDuration(percentile(tookMs, share))),
    `${((100 * answers.unknown) / addresses).toFixed(1)}%`,
    ...[wrong, connections, refused, blocks].map(group),
    listings === 0 ? 'no' : 'yes',
  ]
}

const toRow = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
const group = (count: number) => count.toLocaleString('en')

function formatDuration(ms: number): string {
  return ms < 90 * SECOND
    ? `${Math.round(ms / SECOND)} s`
    : `${(ms / MINUTE).toFixed(ms < 10 * MINUTE ? 1 : 0)} min`
}
