import { MINUTE, SECOND } from '../../platform/clock.ts'

/** Intervals of shared rate control, in ms. */
export type RateTimings = {
  /** Poll interval for changes by other processes. */
  readonly pollMs: number
  /** Poll interval while a client waits for an answer. */
  readonly pollSoonMs: number
  /**
   * Each poll overlaps the previous one by this, so that rows that were committed late are seen.
   */
  readonly overlapMs: number
  /** Interval between deletions of unused states. */
  readonly deleteEveryMs: number
  /** Lifetime of a ticket; it is renewed at half of it. */
  readonly ticketMs: number
}

export const DEFAULT_RATE_TIMINGS: RateTimings = {
  pollMs: SECOND,
  pollSoonMs: 250,
  overlapMs: 10 * SECOND,
  deleteEveryMs: 10 * MINUTE,
  ticketMs: 4 * SECOND,
}

/** Throws if a ticket would expire before the poll that renews it. */
export function checkRateTimings({ pollMs, pollSoonMs, ticketMs }: RateTimings): void {
  if (pollSoonMs > pollMs) throw new RangeError('pollSoonMs must not exceed pollMs')
  if (2 * pollMs > ticketMs) throw new RangeError('pollMs must be at most half of ticketMs')
}
