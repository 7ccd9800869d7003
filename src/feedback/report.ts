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

/** Verdicts of one range of confidence. */
type Bin = Pick<ReportRow, 'count' | 'predicted' | 'observed'>

export type FeedbackReport = {
  readonly total: ReportRow
  /** The same verdicts with the fixed confidence of their reasons. */
  readonly fixed: ReportRow
  /** The verdicts by confidence, lowest first: a point of the reliability diagram each. */
  readonly bins: readonly Bin[]
  /** The verdicts by the fixed confidence of their reasons. */
  readonly fixedBins: readonly Bin[]
  readonly outcomes: Outcomes
  readonly reasons: readonly (ReportRow & { readonly reason: string })[]
  readonly operators: readonly (ReportRow & {
    readonly reason: string
    readonly operator: string
  })[]
}

/** Counts of mail by its outcome and its verdict. */
type Outcomes = {
  /** Mail that bounced, and was not deliverable by its verdict. */
  readonly predictedBounces: number
  /** Mail that bounced, and was deliverable by its verdict. */
  readonly missedBounces: number
  /** Mail that arrived, and was not deliverable by its verdict. */
  readonly lostDeliveries: number
  /** Mail that arrived, and was deliverable by its verdict. */
  readonly keptDeliveries: number
}

/** Bins of confidence of the calibration error, each 10 % wide. */
const BINS = 10

/** Builds the report of verdicts with a known outcome. A pure function. */
export function buildReport(counts: readonly VerdictCount[]): FeedbackReport {
  const operators = [
    ...Map.groupBy(counts, ({ reason, operator }) => `${reason}\n${operator}`).values(),
  ]
  const fixed = counts.map(count => ({ ...count, confidence: fixedConfidence(count.reason) }))
  return {
    total: toRow(counts),
    fixed: toRow(fixed),
    bins: toBins(counts),
    fixedBins: toBins(fixed),
    outcomes: toOutcomes(counts),
    reasons: [...Map.groupBy(counts, ({ reason }) => reason)]
      .map(([reason, all]) => ({ reason, ...toRow(all) }))
      .sort(byCount),
    operators: operators
      .map(all => ({
        reason: all[0]?.reason ?? '',
        operator: all[0]?.operator ?? '',
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
  const calibrationError = sum(
    toBins(counts),
    bin => Math.abs(bin.predicted - bin.observed) * (bin.count / count),
  )
  const observed = sum(counts, one => one.correct) / count
  return { count, predicted, observed, brierScore: brier / count, calibrationError }
}

/** Groups verdicts by confidence. Empty bins are left out. */
function toBins(counts: readonly VerdictCount[]): Bin[] {
  const bins = Map.groupBy(counts, ({ confidence }) =>
    Math.min(BINS - 1, Math.floor((confidence / 100) * BINS)),
  )
  return [...bins]
    .sort(([a], [b]) => a - b)
    .map(([, bin]) => {
      const count = sum(bin, one => one.correct + one.wrong)
      const said = sum(bin, one => (one.confidence / 100) * (one.correct + one.wrong))
      return { count, predicted: said / count, observed: sum(bin, one => one.correct) / count }
    })
    .filter(({ count }) => count > 0)
}

function toOutcomes(counts: readonly VerdictCount[]): Outcomes {
  const isDeliverable = ({ reason }: VerdictCount) => {
    const [name, risk] = reason.split('/')
    return risk === 'low' || VERDICT_BY_REASON[name as Reason]?.deliverable === true
  }
  const deliverable = counts.filter(isDeliverable)
  const others = counts.filter(one => !isDeliverable(one))
  return {
    predictedBounces: sum(others, one => one.correct),
    missedBounces: sum(deliverable, one => one.wrong),
    lostDeliveries: sum(others, one => one.wrong),
    keptDeliveries: sum(deliverable, one => one.correct),
  }
}

const sum = <T>(all: readonly T[], numberOf: (one: T) => number) =>
  all.reduce((total, one) => total + numberOf(one), 0)
