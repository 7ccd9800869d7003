import { OperationError } from '../../platform/operation-error.ts'
import { type Plan, periodEnd } from '../plan.ts'

/** Per cent of a plan's credits at which an account is told; at the last they are used up. */
export const THRESHOLDS = [80, 95, 100] as const

/** The thresholds that `used` has reached and that were not told of yet, in rising order; `warned` is the last that was. */
export function reachedThresholds(o: {
  readonly limit: number
  readonly used: number
  readonly warned: number
}): number[] {
  return THRESHOLDS.filter(percent => percent > o.warned && o.used * 100 >= o.limit * percent)
}

/** The refusal of an account that has no credit left today. */
export const creditsUsedUp = (limit: number, now: number) =>
  new OperationError('credits_used_up', { limit, now, resetAt: periodEnd(now) })

/** The refusal of a list that needs more credits than are left today; null: it is not known how many. */
export const creditsExceeded = (
  { name, creditsPerDay }: Plan,
  now: number,
  { needed, left }: { readonly needed: number | null; readonly left: number | null },
) =>
  new OperationError('credits_exceeded', {
    ...{ plan: name, creditsPerDay: creditsPerDay ?? 0, needed, left },
    ...{ now, resetAt: periodEnd(now) },
  })
