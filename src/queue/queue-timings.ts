import { SECOND } from '../base/clock.ts'

/** Intervals and timeouts of a queue, in ms. */
export type QueueTimings = {
  /** Mean interval at which each kind is looked at; a put wakes its workers at once. */
  readonly beatMs: number
  /** How often entries of dead workers are looked for. pg-boss takes whole seconds, 1 at least. */
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
  /** Entries that fall due within so much time of one another share one timer. */
  readonly alarmSlotMs: number
  /** An entry due later than this has no timer: a beat finds it. */
  readonly alarmHorizonMs: number
  /** How long closing waits for a database that does not answer. */
  readonly leaveMs: number
  readonly connectMs: number
  readonly statementMs: number
  /** Beyond `statementMs`: how long to wait for a server that does not end a statement itself. */
  readonly silenceMs: number
}

export const DEFAULT_QUEUE_TIMINGS: QueueTimings = {
  beatMs: SECOND,
  monitorMs: 2 * SECOND,
  heartbeatMs: 10 * SECOND,
  touchMs: 3 * SECOND,
  aliveMs: 9 * SECOND,
  retryMs: SECOND,
  clearMs: 5 * SECOND,
  alarmSlotMs: 50,
  alarmHorizonMs: 2 * SECOND,
  leaveMs: 5 * SECOND,
  connectMs: 5 * SECOND,
  statementMs: 10 * SECOND,
  silenceMs: 2 * SECOND,
}

/**
 * Throws where the intervals contradict one another: a claim must be kept before it counts as lost
 * here, and count as lost here before pg-boss gives its entry to another process. An entry without
 * a timer must be found by a beat before its time is past for longer than a beat.
 */
export function checkQueueTimings(timings: QueueTimings): void {
  const { beatMs, touchMs, aliveMs, heartbeatMs, alarmHorizonMs } = timings
  if (touchMs >= aliveMs) throw new RangeError('touchMs must be less than aliveMs')
  if (aliveMs >= heartbeatMs) throw new RangeError('aliveMs must be less than heartbeatMs')
  if (beatMs > alarmHorizonMs) throw new RangeError('beatMs must not exceed alarmHorizonMs')
}
