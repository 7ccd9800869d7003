import { DAY } from '../platform/clock.ts'
import type { VerdictCount } from './feedback-store.ts'
import { PERIOD_MS } from './record-feedback.ts'

/** Verdicts with a known outcome: how many, and how many of them were correct; weighted by age. */
type Cell = { readonly correct: number; readonly total: number }

/** The share of correct verdicts, by reason, and by reason and operator. */
export type CalibrationModel = ReadonlyMap<string, Cell>

/** A measured confidence, with the counts behind it. */
type Calibration = {
  /** 0 to 100. */
  readonly confidence: number
  /** The fixed confidence of the reason, which is the prior. */
  readonly fixed: number
  readonly reason: Cell
  /** Null if the operator has too few verdicts. */
  readonly operator: Cell | null
}

/**
 * Weight of the prior: it counts as this many verdicts. With n measured ones, the share moves
 * n / (n + 10) of the way from the fixed figure to the measured one.
 */
export const PRIOR_WEIGHT = 10
/** An operator with fewer verdicts is not told apart from its reason. */
export const OPERATOR_TOTAL_MIN = 30
/** After this time a count has half its weight: operators change their policies. */
const HALF_LIFE_MS = 90 * DAY
/** Counts below this weight are left out. */
const WEIGHT_MIN = 0.001

/** The name of a cell: that of the reason, or of an operator of it. */
const cellName = (reason: string, operator: string | null) =>
  operator === null ? reason : `${reason}\n${operator}`

/** Sums counts by reason and operator, weighted by the time since the end of their period. */
export function buildModel(counts: readonly VerdictCount[], now: number): CalibrationModel {
  const model = new Map<string, Cell>()
  const add = (name: string, count: VerdictCount, weight: number) => {
    const { correct, total } = model.get(name) ?? { correct: 0, total: 0 }
    model.set(name, {
      correct: correct + weight * count.correct,
      total: total + weight * (count.correct + count.wrong),
    })
  }
  for (const count of counts) {
    const age = Math.max(0, now - count.period - PERIOD_MS)
    const weight = 0.5 ** (age / HALF_LIFE_MS)
    if (weight < WEIGHT_MIN) continue
    add(cellName(count.reason, null), count, weight)
    if (count.operator !== '') add(cellName(count.reason, count.operator), count, weight)
  }
  return model
}

/**
 * Returns the measured confidence of a verdict: the mean of a Beta distribution. The prior of a
 * reason is its fixed confidence, the prior of an operator is its reason. Null without
 * measurements.
 */
export function calibrate(
  model: CalibrationModel,
  verdict: { readonly reason: string; readonly operator: string | null; readonly fixed: number },
): Calibration | null {
  const reason = model.get(cellName(verdict.reason, null))
  if (reason === undefined || reason.total <= 0) return null
  const measured = posteriorMean(reason, verdict.fixed / 100)
  const known =
    verdict.operator === null ? undefined : model.get(cellName(verdict.reason, verdict.operator))
  const operator = known !== undefined && known.total >= OPERATOR_TOTAL_MIN ? known : null
  const share = operator === null ? measured : posteriorMean(operator, measured)
  return { confidence: Math.round(100 * share), fixed: verdict.fixed, reason, operator }
}

/** The mean of a Beta distribution with a prior of `PRIOR_WEIGHT` observations. */
export const posteriorMean = (
  { correct, total }: Cell,
  prior: number,
  weight = PRIOR_WEIGHT,
): number => (correct + weight * prior) / (total + weight)

/** The quantile of the normal distribution for an interval of 95 %. */
const Z = 1.96

/** The Wilson score interval of a share: where it lies with a probability of 95 %. */
export function wilsonInterval(successes: number, total: number): { low: number; high: number } {
  if (total <= 0) return { low: 0, high: 1 }
  const share = successes / total
  const squared = Z ** 2 / total
  const center = (share + squared / 2) / (1 + squared)
  const spread =
    (Z * Math.sqrt((share * (1 - share)) / total + squared / (4 * total))) / (1 + squared)
  return { low: Math.max(0, center - spread), high: Math.min(1, center + spread) }
}
