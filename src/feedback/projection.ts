import {
  ACTIONS,
  type Action,
  type ActionCase,
  type ActionPolicy,
  decideCase,
} from '../engine/verdict/action.ts'
import { posteriorMean } from './beta-binomial.ts'
import { BOUNCE_RATES } from './bounce-rates.ts'
import { wilsonInterval } from './calibration.ts'
import type { BounceModel, ReasonModel } from './calibration-model.ts'
import { TREND_DEVIATION, TREND_PROBABILITY } from './share-over-time.ts'

// The projected bounce rate of a list: of mail to all of its addresses, and to those that are left
// when the actions are followed.

/** Rows of a list with the same case and operator. */
export type ResultGroup = {
  readonly which: ActionCase
  /** Null if no mail server was looked up, and for rare operators together. */
  readonly operator: string | null
  readonly count: number
  /** The sum of the squares of the counts of its operators. */
  readonly squares: number
}

/** The bounces of mail to some addresses. Rates are from 0 to 1. */
export type BounceProjection = {
  /** Addresses that are mailed. */
  readonly addresses: number
  readonly rate: number
  /** The rate of one mailing lies between these with a probability of about 95 %. */
  readonly rateMin: number
  readonly rateMax: number
}

export type ListProjection = {
  /** Rows by action. */
  readonly actions: Readonly<Record<Action, number>>
  /** Mail to every address. */
  readonly before: BounceProjection
  /** Mail to the addresses with the actions `send` and `send_with_care`. */
  readonly after: BounceProjection
  /** Own reports, weighted by their age, about the verdicts of this list. */
  readonly reports: number
}

/** Limits of providers, as shares, for comparison. */
export const PROVIDER_LIMITS = {
  /** Amazon SES reviews an account, and may pause it (Amazon SES, "Enforcement" FAQ). */
  sesBounceReview: 0.05,
  sesBouncePause: 0.1,
  /** The rate of spam complaints that a bulk sender must not reach (Gmail sender guidelines). */
  gmailComplaints: 0.003,
} as const

/** Operators of one case that are counted at a time: a list may have as many as rows. */
const OPERATORS_MAX = 10_000
/** Operators of one case that are returned: counts of lists are cached. */
const OPERATORS_KEPT = 200

type CaseCount = {
  readonly operators: Map<string | null, number>
  /** Operators that were too many, together. */
  count: number
  squares: number
}

/** Counts results by case and operator. */
export class ResultCounter {
  readonly #cases = new Map<ActionCase, CaseCount>()

  add(which: ActionCase, operator: string | null, count: number): void {
    let found = this.#cases.get(which)
    if (found === undefined) {
      found = { operators: new Map(), count: 0, squares: 0 }
      this.#cases.set(which, found)
    }
    found.operators.set(operator, (found.operators.get(operator) ?? 0) + count)
    if (found.operators.size > OPERATORS_MAX) mergeRare(found, OPERATORS_MAX / 2)
  }

  /** Returns the groups, with at most `OPERATORS_KEPT` operators of each case. */
  groups(): ResultGroup[] {
    return [...this.#cases].flatMap(([which, counted]) => {
      mergeRare(counted, OPERATORS_KEPT)
      const groups = [...counted.operators].map(([operator, count]) => ({
        which,
        operator,
        count,
        squares: count ** 2,
      }))
      const { count, squares } = counted
      return count === 0 ? groups : [...groups, { which, operator: null, count, squares }]
    })
  }
}

/** Merges the operators with the fewest results. */
function mergeRare(counted: CaseCount, max: number): void {
  const { operators } = counted
  if (operators.size <= max) return
  const rare = [...operators].sort(([, a], [, b]) => b - a).slice(max)
  for (const [operator, count] of rare) {
    operators.delete(operator)
    counted.count += count
    counted.squares += count ** 2
  }
}

/** Projects the bounces of a list. `model` is null without own reports. A pure function. */
export function projectList(
  groups: readonly ResultGroup[],
  { policy, model }: { readonly policy: ActionPolicy; readonly model: BounceModel | null },
): ListProjection {
  const actionOf = ({ which }: ResultGroup) => decideCase(which, policy).action
  const isMailed = (group: ResultGroup) =>
    actionOf(group) === 'send' || actionOf(group) === 'send_with_care'
  const count = (action: Action) =>
    groups.reduce((sum, group) => sum + (actionOf(group) === action ? group.count : 0), 0)
  const cases = new Set(groups.map(({ which }) => which))
  const reports = [...cases].reduce((sum, which) => sum + (model?.get(which)?.cell.total ?? 0), 0)
  return {
    actions: Object.fromEntries(ACTIONS.map(action => [action, count(action)])) as Record<
      Action,
      number
    >,
    before: projectBounces(groups, model),
    after: projectBounces(groups.filter(isMailed), model),
    reports: Math.round(reports),
  }
}

/**
 * Projects the bounces of mail to all addresses of these groups; a row without an address is not
 * mailed. A pure function.
 */
export function projectBounces(
  groups: readonly ResultGroup[],
  model: BounceModel | null,
): BounceProjection {
  const mailed = groups.filter(({ which }) => which !== 'no_address')
  let [addresses, bounces, variance] = [0, 0, 0]
  for (const [which, all] of Map.groupBy(mailed, ({ which }) => which)) {
    const part = projectCase(which, all, model?.get(which) ?? null)
    addresses += part.addresses
    bounces += part.bounces
    variance += part.variance
  }
  if (addresses === 0) return { addresses, rate: 0, rateMin: 0, rateMax: 0 }
  const rate = bounces / addresses
  if (variance <= 0) return { addresses, rate, rateMin: rate, rateMax: rate }
  // So many independent mails would have the same variance.
  const effective = (rate * (1 - rate) * addresses ** 2) / variance
  const { low, high } = wilsonInterval(rate * effective, effective)
  return { addresses, rate, rateMin: low, rateMax: high }
}

/**
 * Returns the expected number of bounces of one case, and its variance. The share of the case is a
 * Beta distribution, which its operators have in common as far as they have no reports; that of an
 * operator is one whose prior is the share of the case; and each mail is one draw from it.
 */
function projectCase(which: ActionCase, groups: readonly ResultGroup[], known: ReasonModel | null) {
  const { rate, weight } = BOUNCE_RATES[which]
  const cell = known?.cell ?? NO_REPORTS
  const share = posteriorMean(cell, rate, weight)
  const operatorWeight = known?.operatorWeight ?? weight
  let [addresses, bounces, variance, common] = [0, 0, 0, 0]
  for (const { operator, count, squares } of groups) {
    const own = (operator === null ? null : known?.findOperator(operator)) ?? NO_REPORTS
    const mean = posteriorMean(own, share, operatorWeight)
    const noise = mean * (1 - mean)
    const spread = noise / (own.total + operatorWeight + 1) + getDriftVariance(own.total, noise)
    addresses += count
    bounces += count * mean
    variance += squares * spread + count * Math.max(0, noise - spread)
    common += (count * operatorWeight) / (own.total + operatorWeight)
  }
  const uncertainty = (share * (1 - share)) / (cell.total + weight + 1)
  return { addresses, bounces, variance: variance + common ** 2 * uncertainty }
}

const NO_REPORTS = { correct: 0, total: 0 }

/** The variance of what a share changes until the mail is sent, before its counts say more. */
const DRIFT_VARIANCE = TREND_PROBABILITY * (TREND_DEVIATION * 0.5 * 365) ** 2
/**
 * The variance of a straight line at its end is four times that of a mean: three times as much are
 * due to its slope.
 */
const SLOPE_VARIANCE = 3

/**
 * Returns the variance of a share that is due to its change since its reports: as expected of all
 * shares, less what the reports say about the slope. Assumptions have wide intervals already.
 */
const getDriftVariance = (total: number, noise: number): number =>
  total === 0 || noise === 0 ? 0 : 1 / (1 / DRIFT_VARIANCE + total / (SLOPE_VARIANCE * noise))
