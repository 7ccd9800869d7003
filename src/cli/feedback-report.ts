import { getDayCounts, getVerdictCounts } from '../feedback/feedback-counts.ts'
import { presentReplies, presentReport } from '../feedback/present-report.ts'
import {
  type ContradictedReply,
  findContradictedReplies,
  REPLY_AGE_MAX_MS,
} from '../feedback/replies.ts'
import { getReplySums } from '../feedback/reply-counts.ts'
import { buildReport, type FeedbackReport, type ReportRow } from '../feedback/report.ts'
import { formatNumber, formatPercent } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { openExisting } from './database.ts'
import { findOwner } from './feedback-import.ts'
import { printJson } from './print.ts'
import { readConfig } from './settings.ts'
import { type Column, table } from './table.ts'
import { widthOf } from './width.ts'

export type ReportFlags = {
  readonly account?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev feedback report` and returns the exit code. */
export async function reportCommand(context: CliContext, flags: ReportFlags): Promise<number> {
  const config = readConfig(context, flags)
  const database = await openExisting(context, config)
  try {
    const owner = database === null ? '' : await findOwner(database, flags.account)
    const counts = database === null ? [] : await getVerdictCounts(database, owner)
    const report = buildReport(counts)
    const days = database === null ? [] : await getDayCounts(database, owner, DAYS_SHOWN)
    const since = context.clock.now() - REPLY_AGE_MAX_MS
    const replies = findContradictedReplies(
      database === null ? [] : await getReplySums(database, since),
    )
    const width = widthOf(context, context.stdout)
    if (flags.json)
      printJson(context, { ...presentReport(report, days), ...presentReplies(replies) })
    else context.stdout.write(`${reportText(report, width)}${repliesText(replies, width)}`)
    return 0
  } finally {
    await database?.close()
  }
}

/** Days with feedback in the JSON. */
const DAYS_SHOWN = 30

function repliesText(replies: readonly ContradictedReply[], width: number | null): string {
  if (replies.length === 0) return ''
  const rows = replies.map(row => [
    sanitizeText(row.operator) || 'unknown operator',
    row.said,
    formatNumber(row.count),
    formatNumber(row.contradicted),
    formatPercent(row.shareMin, 1),
    formatNumber(row.accounts),
    sanitizeText(`${row.reply} (${row.meaning})`),
  ])
  return `\nReplies that feedback contradicts, of all accounts\n\n${table(REPLY_COLUMNS, rows, width)}`
}

const REPLY_COLUMNS: readonly Column[] = [
  ...[{ title: 'OPERATOR' }, { title: 'SAID' }],
  ...['COUNT', 'CONTRADICTED', 'AT LEAST', 'ACCOUNTS'].map(title => ({
    title,
    align: 'right' as const,
  })),
  { title: 'REPLY' },
]

/** Operators with the most verdicts; the JSON has all. */
const OPERATORS_SHOWN = 20

function reportText(report: FeedbackReport, width: number | null) {
  const { total, fixed, reasons, operators } = report
  if (total.count === 0) {
    return 'No verdict has a known outcome yet. ev compares verdicts from the first feedback on: verify, send, and import what came back.\n'
  }
  const all = [
    ...[rowOf('all verdicts', total), rowOf('with fixed confidence', fixed)],
    ...reasons.map(row => rowOf(row.reason, row)),
  ]
  const shown = operators.slice(0, OPERATORS_SHOWN)
  const named = shown.map(row =>
    rowOf(`${row.reason}, ${sanitizeText(row.operator) || 'unknown operator'}`, row),
  )
  return `${table([{ title: 'REASON' }, ...FIGURES], all, width)}\n${table([{ title: 'OPERATOR' }, ...FIGURES], named, width)}\n${outcomesText(report)}`
}

function outcomesText({ outcomes }: FeedbackReport): string {
  const { predictedBounces, missedBounces, lostDeliveries, keptDeliveries } = outcomes
  const share = (count: number, other: number) =>
    `${formatNumber(count)} of ${formatNumber(count + other)} (${formatPercent(count, count + other)})`
  return `Mail that bounced and was not deliverable by its verdict: ${share(predictedBounces, missedBounces)}.
Mail that arrived although it was not deliverable by its verdict: ${share(lostDeliveries, keptDeliveries)}.
`
}

const FIGURES = ['COUNT', 'PREDICTED', 'OBSERVED', 'BRIER', 'ECE'].map(title => ({
  title,
  align: 'right' as const,
}))

const rowOf = (name: string, row: ReportRow) => [
  name,
  formatNumber(row.count),
  formatPercent(row.predicted, 1),
  formatPercent(row.observed, 1),
  row.brierScore.toFixed(3),
  row.calibrationError.toFixed(3),
]
