import { SECOND } from '../platform/clock.ts'

/** Intervals and timeouts of a queue, in ms. */
export type QueueTimings = {
  /** Mean interval at which claims are looked after. */
  readonly beatMs: number
  /**
   * How often tasks are asked for that nobody told of. A put wakes the workers of its own process,
   * and those of others by a notification; while none can be had tasks are asked for at each beat.
   */
  readonly pollMs: number
  /**
   * How often tasks of dead workers are looked for; their next worker may hear of them only at its
   * next poll. pg-boss takes 1 s at least.
   */
  readonly monitorMs: number
  /** An entry whose worker is silent for so long goes to another. pg-boss takes 10 s at least. */
  readonly heartbeatMs: number
  /** How often claims are kept. */
  readonly touchMs: number
  /** A claim that was not kept for so long is let go of, shortly before others may have it. */
  readonly aliveMs: number
  /** Wait after a handler threw or the database failed: long enough not to spin. */
  readonly retryMs: number
  /** The log says that the database works again after so long without a fault. */
  readonly clearMs: number
  /** How long closing waits for a database that does not answer. */
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
 * Throws where the intervals contradict one another: a claim must be kept before it counts as lost
 * here, and count as lost here before pg-boss gives its task to another process.
 */
export function checkQueueTimings(timings: QueueTimings): void {
  const { touchMs, aliveMs, heartbeatMs } = timings
  if (touchMs >= aliveMs) throw new RangeError('touchMs must be less than aliveMs')
  if (aliveMs >= heartbeatMs) throw new RangeError('aliveMs must be less than heartbeatMs')
}
