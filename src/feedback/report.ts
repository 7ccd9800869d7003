import { type Reason, VERDICT_BY_REASON } from '../engine/verdict/reason.ts'
import type { VerdictCount } from './feedback-counts.ts'

/** Compares the confidence of verdicts with their outcomes. */
export type ReportRow = {
  readonly count: number
  /** Mean confidence, 0 to 1. */
  readonly predicted: number
  /** Share of correct verdicts. */
  readonly observed: number
  /** Mean squared difference of confidence and outcome: 0 is best. */
  readonly brierScore: number
  /** Expected calibration error: mean difference of confidence and observed share, by bins. */
  readonly calibrationError: number
}

export type FeedbackReport = {
  readonly total: ReportRow
  /** The same verdicts with the fixed confidence of their reasons. */
  readonly fixed: ReportRow
  readonly reasons: readonly (ReportRow & { readonly reason: string })[]
  readonly operators: readonly (ReportRow & {
    readonly reason: string
    readonly operator: string
  })[]
}

/** Bins of confidence of the calibration error, each 10 % wide. */
const BINS = 10

/** Builds the report of verdicts with a known outcome. A pure function. */
export function buildReport(counts: readonly VerdictCount[]): FeedbackReport {
  const operators = [
    ...Map.groupBy(counts, ({ reason, operator }) => `${reason}\n${operator}`).values(),
  ]
  return {
    total: toRow(counts),
    fixed: toRow(counts.map(count => ({ ...count, confidence: fixedConfidence(count.reason) }))),
    reasons: [...Map.groupBy(counts, ({ reason }) => reason)]
      .map(([reason, all]) => ({ reason, ...toRow(all) }))
      .sort(byCount),
    operators: operators
      .map(all => ({
        ...{ reason: all[0]?.reason ?? '', operator: all[0]?.operator ?? '' },
        ...toRow(all),
      }))
      .sort(byCount),
  }
}

const byCount = (a: ReportRow, b: ReportRow) => b.count - a.count

const fixedConfidence = (reason: string) =>
  VERDICT_BY_REASON[(reason.split('/')[0] ?? '') as Reason]?.confidence ?? 0

function toRow(counts: readonly VerdictCount[]): ReportRow {
  const count = sum(counts, one => one.correct + one.wrong)
  if (count === 0) {
    return { count, predicted: 0, observed: 0, brierScore: 0, calibrationError: 0 }
  }
  const predicted = sum(counts, one => (one.confidence / 100) * (one.correct + one.wrong)) / count
  const brier = sum(counts, one => {
    const confidence = one.confidence / 100
    return one.correct * (1 - confidence) ** 2 + one.wrong * confidence ** 2
  })
  const bins = Map.groupBy(counts, one =>
    Math.min(BINS - 1, Math.floor((one.confidence / 100) * BINS)),
  )
  const error = [...bins.values()].reduce((total, bin) => {
    const all = sum(bin, one => one.correct + one.wrong)
    const said = sum(bin, one => (one.confidence / 100) * (one.correct + one.wrong))
    return (
      total + (Math.abs(said - sum(bin, one => one.correct)) / Math.max(all, 1)) * (all / count)
    )
  }, 0)
  const observed = sum(counts, one => one.correct) / count
  return { count, predicted, observed, brierScore: brier / count, calibrationError: error }
}

const sum = <T>(all: readonly T[], numberOf: (one: T) => number) =>
  all.reduce((total, one) => total + numberOf(one), 0)
