/** Per cent of a plan's credits at which an account is told; at the last they are used up. */
export const THRESHOLDS = [80, 95, 100] as const

/** The thresholds that `used` has reached and that were not told of yet, in rising order; `warned` is the last that was. */
export function thresholdsReached(o: {
  readonly limit: number
  readonly used: number
  readonly warned: number
}): number[] {
  return THRESHOLDS.filter(percent => percent > o.warned && o.used * 100 >= o.limit * percent)
}
