import { OperationError } from '../../platform/operation-error.ts'
import { type Plan, periodEnd } from '../plan.ts'

/** Percentages of a plan's credits at which an event is sent; at the last all are used. */
const THRESHOLDS = [80, 95, 100] as const

/**
 * Returns the thresholds that `used` has reached and that are above `warned`, the last one that an
 * event was sent for, in ascending order.
 */
export function reachedThresholds(o: {
  readonly limit: number
  readonly used: number
  readonly warned: number
}): number[] {
  return THRESHOLDS.filter(percent => percent > o.warned && o.used * 100 >= o.limit * percent)
}

/** The error for an account without credits left today. */
export const creditsUsedUpError = (limit: number, now: number) =>
  new OperationError('credits_used_up', { limit, now, resetAt: periodEnd(now) })

/**
 * The error for a list that needs more credits than are left today; `needed` is null if unknown.
 */
export const creditsExceededError = (
  { name, creditsPerDay }: Plan,
  now: number,
  { needed, left }: { readonly needed: number | null; readonly left: number | null },
) =>
  new OperationError('credits_exceeded', {
    ...{ plan: name, creditsPerDay: creditsPerDay ?? 0, needed, left },
    ...{ now, resetAt: periodEnd(now) },
  })
