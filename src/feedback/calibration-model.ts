import type { ActionCase } from '../engine/verdict/action.ts'
import { type Reason, VERDICT_BY_REASON } from '../engine/verdict/reason.ts'
import { averageByLikelihood, type Cell, logLikelihood, posteriorMean } from './beta-binomial.ts'
import { BOUNCE_RATES } from './bounce-rates.ts'
import type { CatchAllCount, VerdictCount } from './feedback-counts.ts'
import { type Aged, estimateNow, PRIOR_WEIGHT, sumAged } from './share-over-time.ts'

/**
 * The shares of correct verdicts in levels: a reason below its fixed confidence, an operator below
 * its reason, a catch-all domain below its operator.
 */
export type CalibrationModel = {
  readonly reasons: ReadonlyMap<string, ReasonModel>
  /** Weight of the fixed confidence against the counts of a reason. */
  readonly reasonWeight: number
}

export type ReasonModel = {
  readonly cell: Aged
  /** Returns the counts of an operator; their total may be 0. */
  readonly findOperator: (operator: string) => Aged
  readonly operatorWeight: number
  /** Of all catch-all domains. */
  readonly domainWeight: number
  /** Of the domains of operators that have enough of them. */
  readonly domainWeights: ReadonlyMap<string, number>
}

/**
 * Candidates for the weight of a prior. The middle, 10, is used without observations; the lowest
 * stands for groups that have nothing in common, the highest for groups that are all alike.
 */
const WEIGHTS = [1, 3, 10, 30, 100]
/** Weights and half-lives are estimated from the largest groups: they have most of the evidence. */
const GROUPS_MAX = 200
/** An operator with fewer catch-all domains has the weight of all of them. */
const DOMAINS_MIN = 10

/** The reason of domains that accept every recipient. */
export const CATCH_ALL: Reason = 'catch_all'

/** Estimates the model from all counts. A pure function. */
export function buildModel(
  counts: readonly VerdictCount[],
  domains: readonly CatchAllCount[],
  now: number,
): CalibrationModel {
  const reasons = [...Map.groupBy(counts.map(toUndeliverable), ({ reason }) => reason)].map(
    ([reason, all]) => {
      const prior = fixedShare(reason)
      const model = buildReason(all, { prior, domains: reason === CATCH_ALL ? domains : [], now })
      return { reason, prior, model }
    },
  )
  const groups = reasons.map(({ prior, model }) => ({ ...model.cell, mean: prior }))
  return {
    reasons: new Map(reasons.map(({ reason, model }) => [reason, model])),
    reasonWeight: fitWeight(groups),
  }
}

/** The reported outcomes by the case of the verdict; `correct` counts bounces. */
export type BounceModel = ReadonlyMap<string, ReasonModel>

/** Estimates how often mail bounced, by the case of the verdict. A pure function. */
export function buildBounceModel(counts: readonly VerdictCount[], now: number): BounceModel {
  const bounces = counts.map(toBounces)
  return new Map(
    [...Map.groupBy(bounces, ({ reason }) => reason)].map(([which, all]) => {
      const prior = BOUNCE_RATES[which as ActionCase]?.rate ?? 0.5
      return [which, buildReason(all, { prior, domains: [], now })] as const
    }),
  )
}

/** A verdict is correct if mail arrived and it was deliverable, or bounced and it was not. */
function toBounces(count: VerdictCount): VerdictCount {
  const [reason = '', risk] = count.reason.split('/')
  const isDeliverable = risk === 'low' || VERDICT_BY_REASON[reason as Reason]?.deliverable === true
  const [correct, wrong] = isDeliverable
    ? [count.wrong, count.correct]
    : [count.correct, count.wrong]
  return { ...count, reason: risk === 'medium' ? reason : count.reason, correct, wrong }
}

/** Verdicts of all catch-all domains are compared as if none of them were deliverable. */
function toUndeliverable(count: VerdictCount): VerdictCount {
  if (!count.reason.includes('/')) return count
  const [reason = '', risk] = count.reason.split('/')
  return risk === 'low'
    ? { ...count, reason, correct: count.wrong, wrong: count.correct }
    : { ...count, reason }
}

type ReasonOptions = {
  /** The expected share without counts. */
  readonly prior: number
  readonly domains: readonly CatchAllCount[]
  readonly now: number
}

function buildReason(
  counts: readonly VerdictCount[],
  { prior, domains, now }: ReasonOptions,
): ReasonModel {
  const cell = estimateNow(counts, prior, now)
  const mean = posteriorMean(cell, prior, PRIOR_WEIGHT)
  const byOperator = Map.groupBy(counts, ({ operator }) => operator)
  byOperator.delete('')
  const largest = [...byOperator]
    .map(([operator, all]) => ({ operator, all, size: sizeOf(all) }))
    .sort((a, b) => b.size - a.size)
    .slice(0, GROUPS_MAX)
    .map(({ operator, all }) => [operator, estimateNow(all, mean, now)] as const)
  const cells = new Map(largest)
  return {
    cell,
    // There may be 100,000 others, most of which no verdict asks for.
    findOperator: operator => cells.get(operator) ?? sumAged(byOperator.get(operator) ?? [], now),
    operatorWeight: fitWeight(largest.map(([, one]) => ({ ...one, mean }))),
    ...fitDomains(domains),
  }
}

const sizeOf = (counts: readonly VerdictCount[]) =>
  counts.reduce((sum, { correct, wrong }) => sum + correct + wrong, 0)

/** Weights of operators against the reports about one of their catch-all domains. */
function fitDomains(domains: readonly CatchAllCount[]) {
  const estimate = (all: readonly CatchAllCount[]) => {
    const dead = all.reduce((sum, one) => sum + one.dead * one.domains, 0)
    const total = all.reduce((sum, one) => sum + (one.alive + one.dead) * one.domains, 0)
    const mean = (dead + 1) / (total + 2)
    return fitWeight(
      all.map(one => ({
        correct: one.dead,
        total: one.alive + one.dead,
        mean,
        groups: one.domains,
      })),
    )
  }
  const large = [...Map.groupBy(domains, ({ operator }) => operator)].filter(
    ([, all]) => all.reduce((sum, one) => sum + one.domains, 0) >= DOMAINS_MIN,
  )
  return {
    domainWeight: estimate(domains),
    domainWeights: new Map(large.map(([operator, all]) => [operator, estimate(all)])),
  }
}

/** Groups of a prior: `groups` equal ones with the same expected share. */
type Group = Cell & { readonly mean: number; readonly groups?: number }

/** Estimates how much groups have in common: the weight of their prior (empirical Bayes). */
function fitWeight(groups: readonly Group[]): number {
  const largest = [...groups].sort((a, b) => b.total - a.total).slice(0, GROUPS_MAX)
  const logs = WEIGHTS.map(weight =>
    largest.reduce((sum, one) => sum + (one.groups ?? 1) * logLikelihood(one, one.mean, weight), 0),
  )
  return averageByLikelihood(WEIGHTS, logs)
}

const fixedShare = (reason: string) => (VERDICT_BY_REASON[reason as Reason]?.confidence ?? 50) / 100
