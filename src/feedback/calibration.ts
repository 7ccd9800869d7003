import { type Cell, posteriorMean } from './beta-binomial.ts'
import { CATCH_ALL, type CalibrationModel, type ReasonModel } from './calibration-model.ts'
import type { DomainCount } from './feedback-counts.ts'

/** Verdicts with a known outcome, and how much the level above weighs against them. */
type Level = Cell & {
  /** The share of the level above counts as this many verdicts. */
  readonly priorWeight: number
  /** After this time a count has half its weight; null if counts do not age. */
  readonly halfLifeDays: number | null
  /** How much of the share is the extrapolation of its trend; null if counts do not age. */
  readonly trend: number | null
}

/** A measured confidence, with the counts behind it. */
type Calibration = {
  /** 0 to 100. */
  readonly confidence: number
  /** The fixed confidence of the reason, which is the first prior. */
  readonly fixed: number
  readonly reason: Level
  /** Null without verdicts of the operator. */
  readonly operator: Level | null
  /** Null without reports about the domain, and for a domain that is not a catch-all. */
  readonly domain: Level | null
}

/** A verdict whose confidence is measured. */
type Measured = {
  readonly reason: string
  readonly operator: string | null
  readonly fixed: number
  readonly deliverable: boolean
  /** The reports about the domain. */
  readonly domain: DomainCount | null
}

/**
 * Returns the measured confidence of a verdict: at each level the mean of a Beta distribution whose
 * prior is the level above. Null without measurements.
 */
export function calibrate(model: CalibrationModel, verdict: Measured): Calibration | null {
  const known = model.reasons.get(verdict.reason)
  if (known === undefined || known.cell.total <= 0) return null
  const isCatchAll = verdict.reason === CATCH_ALL
  const domain = isCatchAll ? domainLevel(known, verdict) : null
  const reason = { ...known.cell, priorWeight: model.reasonWeight }
  const operator = operatorLevel(known, verdict.operator, domain)
  const levels = [reason, operator, domain].filter(level => level !== null)
  const share = levels.reduce(
    (above, level) => posteriorMean(level, above, level.priorWeight),
    verdict.fixed / 100,
  )
  // The counts of catch-all domains are those of undeliverable addresses.
  const flip = <L extends Level | null>(level: L): L =>
    level !== null && isCatchAll && verdict.deliverable
      ? { ...level, correct: level.total - level.correct, trend: level.trend && -level.trend }
      : level
  return {
    confidence: Math.round(100 * (isCatchAll && verdict.deliverable ? 1 - share : share)),
    fixed: verdict.fixed,
    reason: flip(reason),
    operator: flip(operator),
    domain: flip(domain),
  }
}

function domainLevel(known: ReasonModel, { domain, operator }: Measured): Level | null {
  if (domain === null || domain.alive + domain.dead <= 0) return null
  const priorWeight = known.domainWeights.get(operator ?? '') ?? known.domainWeight
  const { alive, dead } = domain
  return { correct: dead, total: alive + dead, priorWeight, halfLifeDays: null, trend: null }
}

/** Reports about the domain count once: they are left out of the counts of its operator. */
function operatorLevel(
  known: ReasonModel,
  operator: string | null,
  domain: Level | null,
): Level | null {
  if (operator === null) return null
  const cell = known.findOperator(operator)
  const total = Math.max(0, cell.total - (domain?.total ?? 0))
  if (total <= 0) return null
  const correct = Math.min(total, Math.max(0, cell.correct - (domain?.correct ?? 0)))
  const { halfLifeDays, trend } = cell
  return { correct, total, priorWeight: known.operatorWeight, halfLifeDays, trend }
}

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
