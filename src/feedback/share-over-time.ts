import { DAY } from '../platform/clock.ts'
import { PERIOD_MS } from './address-state.ts'
import {
  averageByLikelihood,
  type Cell,
  logLikelihood,
  logSum,
  posteriorMean,
} from './beta-binomial.ts'
import type { VerdictCount } from './feedback-counts.ts'

/** Counts as they stand for now: earlier ones weigh less, and a trend is extrapolated. */
export type Aged = Cell & {
  /** After this time a count has half its weight. */
  readonly halfLifeDays: number
  /** How much of the share, from -1 to 1, is the extrapolation of its trend. */
  readonly trend: number
}

/** The weight of a prior that nothing is known about. */
export const PRIOR_WEIGHT = 10
/** Candidates for the half-life of counts, in days: from fast change to none. */
const HALF_LIVES = [10, 30, 90, 270, 810]
/** The same with a trend. Few days show no trend: a shorter half-life follows a change as well. */
const TREND_HALF_LIVES = [90, 270, 810]
/** The half-life of counts that nothing is known about, in days. */
const HALF_LIFE_DAYS = 90
/** Fewer verdicts do not show whether a share changes. */
const CHANGE_TOTAL_MIN = 30
/** Counts below this weight are left out. */
const COUNT_WEIGHT_MIN = 0.001
/** Most shares are constant, or change without direction: one in ten is expected to have a trend. */
export const TREND_PROBABILITY = 0.1
/** The standard deviation of trends, in share per day: a share that changes by 0.3 in a year. */
export const TREND_DEVIATION = 0.3 / 365
/** The lowest variance of a share, so that one of exactly 0 or 1 leaves a trend uncertain. */
const VARIANCE_MIN = 0.001

/** The counts of one period; `day` is its middle. */
type Point = Cell & { readonly period: number; readonly day: number }

/** Estimates the share of correct verdicts of now, whose prior has the given mean. */
export function estimateNow(counts: readonly VerdictCount[], mean: number, now: number): Aged {
  const points = toPoints(counts, now)
  const total = points.reduce((sum, point) => sum + point.total, 0)
  if (points.length < 2 || total < CHANGE_TOTAL_MIN) return weigh(points, HALF_LIFE_DAYS, now)
  const level = fitHalfLife(points, { mean, hasTrend: false })
  const trended = fitHalfLife(points, { mean, hasTrend: true })
  const odds = (TREND_PROBABILITY / (1 - TREND_PROBABILITY)) * Math.exp(trended.log - level.log)
  return average(
    weigh(points, level.halfLifeDays, now),
    extrapolate(points, { mean, now, halfLifeDays: trended.halfLifeDays }),
    odds === Number.POSITIVE_INFINITY ? 1 : odds / (1 + odds),
  )
}

/** Sums counts with a half-life of `HALF_LIFE_DAYS`, without a trend. */
export const sumAged = (counts: readonly VerdictCount[], now: number): Aged =>
  weigh(toPoints(counts, now), HALF_LIFE_DAYS, now)

/** Sums counts by period. A correction of an earlier period may leave less than none. */
function toPoints(counts: readonly VerdictCount[], now: number): Point[] {
  const periods = new Map<number, { correct: number; total: number }>()
  for (const { period, correct, wrong } of counts) {
    const sum = periods.get(period) ?? { correct: 0, total: 0 }
    sum.correct += correct
    sum.total += correct + wrong
    periods.set(period, sum)
  }
  return [...periods]
    .sort(([a], [b]) => a - b)
    .map(([period, sum]) => {
      const total = Math.max(0, sum.total)
      const end = Math.max(period, Math.min(now, period + PERIOD_MS))
      return {
        period,
        total,
        day: (period + end) / (2 * DAY),
        correct: Math.min(total, Math.max(0, sum.correct)),
      }
    })
}

/**
 * Estimates how fast counts lose their meaning: the half-life with which earlier periods predict
 * later ones best. `log` is the logarithm of how well they do on average.
 */
function fitHalfLife(points: readonly Point[], options: Omit<Prediction, 'day'>) {
  const halfLives = options.hasTrend ? TREND_HALF_LIVES : HALF_LIVES
  const logs = halfLives.map(halfLifeDays => {
    const sums = newSums()
    let previous = points[0]?.day ?? 0
    let log = 0
    for (const point of points) {
      scale(sums, 0.5 ** ((point.day - previous) / halfLifeDays))
      const { share, weight } = predict(sums, { ...options, day: point.day })
      log += logLikelihood(point, share, weight)
      add(sums, point, 1)
      previous = point.day
    }
    return log
  })
  const log = logSum(logs) - Math.log(logs.length)
  return { halfLifeDays: averageByLikelihood(halfLives, logs), log }
}

/** Weighted sums of counts: enough for a regression of the share on the time. */
type Sums = Mutable<Cell> & { day: number; daySquared: number; correctDay: number }

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const newSums = (): Sums => ({ correct: 0, total: 0, day: 0, daySquared: 0, correctDay: 0 })

/** Changes the sums in place: a large model has 100,000 of them. */
function scale(sums: Sums, factor: number): void {
  sums.correct *= factor
  sums.total *= factor
  sums.day *= factor
  sums.daySquared *= factor
  sums.correctDay *= factor
}

function add(sums: Sums, { correct, total, day }: Point, weight: number): void {
  sums.correct += weight * correct
  sums.total += weight * total
  sums.day += weight * total * day
  sums.daySquared += weight * total * day * day
  sums.correctDay += weight * correct * day
}

type Prediction = { readonly mean: number; readonly hasTrend: boolean; readonly day: number }

/**
 * Predicts the share of a day, and how many verdicts the prediction is worth. The trend is the slope
 * of the regression line, damped by its prior: the less the counts say about it, the smaller it is.
 */
function predict(sums: Sums, { mean, hasTrend, day }: Prediction) {
  const weight = sums.total + PRIOR_WEIGHT
  const level = posteriorMean(sums, mean, PRIOR_WEIGHT)
  if (!hasTrend || sums.total <= 0) return { share: level, weight }
  const center = sums.day / sums.total
  const spread =
    Math.max(0, sums.daySquared - sums.total * center ** 2) +
    Math.max(VARIANCE_MIN, level * (1 - level)) / TREND_DEVIATION ** 2
  const slope = (sums.correctDay - sums.correct * center) / spread
  const share = level + slope * (day - center) * (sums.total / weight)
  return {
    share: Math.min(1, Math.max(0, share)),
    weight: 1 / (1 / weight + (day - center) ** 2 / spread),
  }
}

/** Sums counts, weighted by the time since the end of their period. */
function sumWeighted(points: readonly Point[], halfLifeDays: number, now: number): Sums {
  const sums = newSums()
  for (const point of points) {
    const age = Math.max(0, now - point.period - PERIOD_MS)
    const weight = 0.5 ** (age / (halfLifeDays * DAY))
    if (weight >= COUNT_WEIGHT_MIN) add(sums, point, weight)
  }
  return sums
}

function weigh(points: readonly Point[], halfLifeDays: number, now: number): Aged {
  const { correct, total } = sumWeighted(points, halfLifeDays, now)
  return { correct, total, halfLifeDays, trend: 0 }
}

/** Moves the share of the counts to where its trend leads by now. */
function extrapolate(
  points: readonly Point[],
  { mean, now, halfLifeDays }: { mean: number; now: number; halfLifeDays: number },
): Aged {
  const sums = sumWeighted(points, halfLifeDays, now)
  const day = now / DAY
  const moved = predict(sums, { mean, day, hasTrend: true }).share
  const change = moved - predict(sums, { mean, day, hasTrend: false }).share
  const { correct, total } = sums
  const changed = Math.min(total, Math.max(0, correct + change * total))
  const trend = total <= 0 ? 0 : (changed - correct) / total
  return { correct: changed, total, halfLifeDays, trend }
}

/** Averages two estimates; `share` is that of the second. */
function average(a: Aged, b: Aged, share: number): Aged {
  const mix = (first: number, second: number) => (1 - share) * first + share * second
  const total = mix(a.total, b.total)
  return {
    total,
    correct: mix(a.correct, b.correct),
    halfLifeDays: Math.exp(mix(Math.log(a.halfLifeDays), Math.log(b.halfLifeDays))),
    trend: total <= 0 ? 0 : mix(a.trend * a.total, b.trend * b.total) / total,
  }
}
