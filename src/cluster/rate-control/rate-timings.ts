import { MINUTE, SECOND } from '../../platform/clock.ts'

/** Intervals by which processes share paces, in ms. */
export type RateTimings = {
  /** How often each process looks for what others changed. */
  readonly pollMs: number
  /** The same while a client waits for an answer. */
  readonly pollSoonMs: number
  /** A row whose commit became visible late is still seen: each look overlaps the last by this. */
  readonly overlapMs: number
  /** How often paces that no process has used for long are deleted. */
  readonly forgetEveryMs: number
  /** A ticket holds for so long unless it is renewed, at half of this. */
  readonly ticketMs: number
}

export const DEFAULT_RATE_TIMINGS: RateTimings = {
  pollMs: SECOND,
  pollSoonMs: 250,
  overlapMs: 10 * SECOND,
  forgetEveryMs: 10 * MINUTE,
  ticketMs: 4 * SECOND,
}

/** Throws where a ticket would end before the look that renews it. */
export function checkRateTimings({ pollMs, pollSoonMs, ticketMs }: RateTimings): void {
  if (pollSoonMs > pollMs) throw new RangeError('lookSoonMs must not exceed lookMs')
  if (2 * pollMs > ticketMs) throw new RangeError('lookMs must be at most half of ticketMs')
}
