import { type Result, toClass } from '../../engine/verdict/verdict.ts'

/**
 * Returns the price of a result in credits: one for a conclusive answer that was probed. An unknown
 * result, a cached result and a syntax error are free.
 */
export function creditsFor({ verdict, cached }: Pick<Result, 'verdict' | 'cached'>): 0 | 1 {
  if (cached || !verdict.details.syntaxValid) return 0
  return toClass(verdict) === 'unknown' ? 0 : 1
}

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
