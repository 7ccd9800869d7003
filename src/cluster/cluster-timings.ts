import { MINUTE, SECOND } from '../platform/clock.ts'

/** Intervals by which the members of a cluster know of one another, in ms. */
export type ClusterTimings = {
  /** How often a member writes that it is alive. */
  readonly beatMs: number
  /** A member that was silent for so long is dead. */
  readonly deadMs: number
  /** A member that was silent for so long has ended its work: others may soon begin with it. */
  readonly silentMs: number
  /** How often each member looks for the others. */
  readonly pollMs: number
  /** A beat or look that takes longer is tried again beside it: its connection may be dead. */
  readonly timeoutMs: number
  /** Wait after a beat or look that failed; short, so that an outage costs no member its life. */
  readonly retryMs: number
  /**
   * A member that was itself heard of less often than this cannot tell who is dead: the database
   * may have been away for all.
   */
  readonly touchMs: number
  /** Each member looks for missing entries after this time and a random part of the spread. */
  readonly reconcileMinMs: number
  readonly reconcileSpreadMs: number
  /** What is due for longer should have been taken: its entry is missing. */
  readonly overdueMs: number
  /** Items of an egress that no member has had for so long go to any other. */
  readonly absentMs: number
}

export const DEFAULT_CLUSTER_TIMINGS: ClusterTimings = {
  beatMs: 3 * SECOND,
  deadMs: 10 * SECOND,
  silentMs: 9.5 * SECOND,
  pollMs: 2 * SECOND,
  timeoutMs: 2 * SECOND,
  retryMs: SECOND / 2,
  touchMs: 5 * SECOND,
  reconcileMinMs: 10 * SECOND,
  reconcileSpreadMs: 5 * SECOND,
  overdueMs: 10 * SECOND,
  absentMs: 5 * MINUTE,
}

/**
 * Throws where the intervals contradict one another: a member that beats as it should must not
 * count as silent, must end its work before others take it for dead, and must be able to tell who
 * is dead (a gap of `touchMs` and one more beat is still less than `deadMs`).
 */
export function checkClusterTimings(timings: ClusterTimings): void {
  const { beatMs, touchMs, silentMs, deadMs } = timings
  if (beatMs >= touchMs) throw new RangeError('beatMs must be less than touchMs')
  if (touchMs + beatMs >= deadMs) throw new RangeError('touchMs + beatMs must be less than deadMs')
  if (silentMs >= deadMs) throw new RangeError('silentMs must be less than deadMs')
  if (beatMs >= silentMs) throw new RangeError('beatMs must be less than silentMs')
}
