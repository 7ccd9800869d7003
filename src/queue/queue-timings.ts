import { SECOND } from '../platform/clock.ts'

/** Intervals and timeouts of a queue, in ms. */
export type QueueTimings = {
  /** Mean interval of the maintenance tick, which renews claims and polls. */
  readonly beatMs: number
  /**
   * Poll interval without notifications. A put wakes the workers of its own process directly and
   * those of other processes by a notification; while notifications are unavailable, each tick
   * polls.
   */
  readonly pollMs: number
  /**
   * How often expired claims are released; the next worker may see them only at its next poll.
   * pg-boss allows 1 s at least.
   */
  readonly monitorMs: number
  /**
   * A claim without a heartbeat for this long goes to another worker. pg-boss allows 10 s at least.
   */
  readonly heartbeatMs: number
  /** Heartbeat interval of claims. */
  readonly touchMs: number
  /**
   * Age of the last heartbeat at which a worker gives up its claim itself, shortly before it
   * expires.
   */
  readonly aliveMs: number
  /** Wait after a handler threw or the database failed, so that retries do not spin. */
  readonly retryMs: number
  /** Time without faults after which the log reports that the database works again. */
  readonly clearMs: number
  /** How long `close` waits for a database that does not respond. */
  readonly leaveMs: number
}

export const DEFAULT_QUEUE_TIMINGS: QueueTimings = {
  beatMs: SECOND,
  pollMs: 4 * SECOND,
  monitorMs: 4 * SECOND,
  heartbeatMs: 10 * SECOND,
  touchMs: 3 * SECOND,
  aliveMs: 9 * SECOND,
  retryMs: SECOND,
  clearMs: 5 * SECOND,
  leaveMs: 5 * SECOND,
}

/**
 * Throws if the intervals contradict each other: a claim must be renewed before this process gives
 * it up, and given up before pg-boss releases it.
 */
export function checkQueueTimings(timings: QueueTimings): void {
  const { touchMs, aliveMs, heartbeatMs } = timings
  if (touchMs >= aliveMs) throw new RangeError('touchMs must be less than aliveMs')
  if (aliveMs >= heartbeatMs) throw new RangeError('aliveMs must be less than heartbeatMs')
}
