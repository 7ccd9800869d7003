import type { DayCount } from './feedback-counts.ts'
import type { ContradictedReply } from './replies.ts'
import type { FeedbackReport, ReportRow } from './report.ts'

/** Presents the report for JSON, with at most `operatorsMax` operators. */
export const presentReport = (
  { total, fixed, bins, fixedBins, outcomes, reasons, operators }: FeedbackReport,
  days: readonly DayCount[],
  operatorsMax = Number.POSITIVE_INFINITY,
) => ({
  total: presentRow(total),
  fixed_confidence: presentRow(fixed),
  bins: bins.map(presentBin),
  fixed_bins: fixedBins.map(presentBin),
  outcomes: {
    predicted_bounces: outcomes.predictedBounces,
    missed_bounces: outcomes.missedBounces,
    kept_deliveries: outcomes.keptDeliveries,
    lost_deliveries: outcomes.lostDeliveries,
  },
  reasons: reasons.map(row => ({ reason: row.reason, ...presentRow(row) })),
  operators: operators.slice(0, operatorsMax).map(row => ({
    reason: row.reason,
    operator: row.operator === '' ? null : row.operator,
    ...presentRow(row),
  })),
  received: days.map(({ day, ...counts }) => ({
    date: new Date(day).toISOString().slice(0, DATE_LENGTH),
    ...counts,
  })),
})

const DATE_LENGTH = 'YYYY-MM-DD'.length

/** Presents replies that feedback contradicts, for JSON. */
export const presentReplies = (replies: readonly ContradictedReply[]) => ({
  contradicted_replies: replies.map(({ operator, shareMin, ...row }) => ({
    operator: operator === '' ? null : operator,
    ...row,
    share_min: round(shareMin),
  })),
})

const presentRow = (row: ReportRow) => ({
  ...presentBin(row),
  brier_score: round(row.brierScore),
  calibration_error: round(row.calibrationError),
})

const presentBin = (row: Pick<ReportRow, 'count' | 'predicted' | 'observed'>) => ({
  count: row.count,
  predicted: round(row.predicted),
  observed: round(row.observed),
})

const round = (value: number) => Number(value.toFixed(4))
