import { MINUTE, SECOND } from '../platform/clock.ts'

/** Intervals by which processes share which domains accept all mail, in ms. */
export type CatchAllTimings = {
  /** Findings of so much time are written together. */
  readonly gatherMs: number
  /** How often findings that are out of date are deleted. */
  readonly forgetEveryMs: number
}

export const DEFAULT_CATCH_ALL_TIMINGS: CatchAllTimings = {
  gatherMs: SECOND,
  forgetEveryMs: 10 * MINUTE,
}
