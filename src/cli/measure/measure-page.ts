import { CLASSES, type Class } from '../../engine/verdict/verdict.ts'
import { formatNumber } from '../../platform/format.ts'
import type { Score, Share, Truth } from './score.ts'

/** The measurement of one tool. */
export type Measured = {
  readonly name: string
  readonly score: Score
  /** Null if the results were read from a file. */
  readonly seconds: number | null
  /** Connections to mail servers; null if they cannot be counted. */
  readonly connections: number | null
  /** Addresses whose server blocked the tool; null if it does not say. */
  readonly blocks: number | null
}

export type Measurement = {
  readonly addresses: number
  readonly exists: number
  readonly missing: number
  readonly skipped: number
  readonly tools: readonly Measured[]
}

type Table = {
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** The measures in the order of the page, with what each says. */
const MEASURES: readonly (readonly [keyof Omit<Score, 'matrix'>, string])[] = [
  ['lost', 'existing mailboxes called undeliverable'],
  ['confirmed', 'existing mailboxes called deliverable'],
  ['caught', 'missing mailboxes called undeliverable'],
  ['missed', 'missing mailboxes called deliverable'],
  ['bounces', 'bounces of mail to what is called deliverable'],
  ['unknown', 'addresses without an answer'],
]

const formatShare = ({ share, min, max, total }: Share): string =>
  share === null || min === null || max === null
    ? '–'
    : `${percent(share)} (${percent(min)} to ${percent(max)}) of ${formatNumber(total)}`

const percent = (share: number) => `${(100 * share).toFixed(1)}%`

const TRUTHS: readonly Truth[] = ['exists', 'missing']
const COLUMNS: readonly (Class | 'none')[] = [...CLASSES, 'none']

/** Returns the tables of a measurement. */
export function measureTables({ tools }: Measurement): Table[] {
  const head = ['', ...tools.map(({ name }) => name)]
  const shares = MEASURES.map(([key, title]) => [
    title,
    ...tools.map(({ score }) => formatShare(score[key])),
  ])
  const costs = [
    ['seconds', ...tools.map(({ seconds }) => (seconds === null ? '–' : seconds.toFixed(1)))],
    ['connections', ...tools.map(({ connections }) => orDash(connections))],
    ['addresses whose server blocked the tool', ...tools.map(({ blocks }) => orDash(blocks))],
  ]
  return [
    { title: 'Shares, with 95% intervals (Wilson)', head, rows: shares },
    { title: 'Cost', head, rows: costs },
    ...tools.map(({ name, score }) => ({
      title: `Verdicts of ${name}`,
      head: ['mailbox', ...COLUMNS.map(one => (one === 'none' ? 'no verdict' : one))],
      rows: TRUTHS.map(truth => [
        truth,
        ...COLUMNS.map(one => formatNumber(score.matrix[truth][one])),
      ]),
    })),
  ]
}

const orDash = (count: number | null) => (count === null ? '–' : formatNumber(count))

/** Says what was measured. */
export const describeMeasurement = ({ addresses, exists, missing, skipped }: Measurement) =>
  `${formatNumber(addresses)} addresses with known truth: ${formatNumber(exists)} mailboxes exist, ${formatNumber(missing)} are missing. ${formatNumber(skipped)} rows were skipped.`

/** What every such page must say. */
const LIMITS =
  'The figures hold for these addresses, seen from this machine at this time. Other domains, another source address or another day give others. An interval covers the chance of the sample, not a biased choice of addresses.'

/** Returns the page as Markdown. */
export function measureMarkdown(measurement: Measurement): string {
  const tables = measureTables(measurement).map(
    ({ title, head, rows }) =>
      `## ${title}\n\n${[head, head.map(() => '---'), ...rows].map(row => `| ${row.map(escapeMarkdown).join(' | ')} |`).join('\n')}\n`,
  )
  return `# Accuracy of email verification\n\n${describeMeasurement(measurement)}\n\n${tables.join('\n')}\n${LIMITS}\n`
}

const escapeMarkdown = (cell: string) => cell.replace(/[|\\]/g, '\\$&')

/** Returns the page as HTML, complete and without scripts. */
export function measureHtml(measurement: Measurement): string {
  const tables = measureTables(measurement).map(({ title, head, rows }) => {
    const line = (cells: readonly string[], tag: 'th' | 'td') =>
      `<tr>${cells.map((cell, n) => `<${n === 0 ? 'th' : tag}>${escapeHtml(cell)}</${n === 0 ? 'th' : tag}>`).join('')}</tr>`
    return `<h2>${escapeHtml(title)}</h2>\n<table>\n${line(head, 'th')}\n${rows.map(row => line(row, 'td')).join('\n')}\n</table>`
  })
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Accuracy of email verification</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}th,td{border:1px solid #ccc;padding:.25rem .5rem;text-align:left}</style>
<h1>Accuracy of email verification</h1>
<p>${escapeHtml(describeMeasurement(measurement))}</p>
${tables.join('\n')}
<p>${escapeHtml(LIMITS)}</p>
</html>
`
}

const escapeHtml = (text: string) => text.replace(/[&<>"]/g, one => `&#${one.charCodeAt(0)};`)
