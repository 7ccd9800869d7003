import { MINUTE, SECOND } from '../../platform/clock.ts'

/** Intervals and timeouts of the delivery of events, in ms. */
export type DeliveryTimings = {
  /** Interval of the poll for due deliveries. */
  readonly duePollMs: number
  /** Wait after a failed query or commit; also the interval of its log line. */
  readonly retryMs: number
  /** Grace period for requests in flight at shutdown; those without a response are sent again. */
  readonly graceMs: number
  /** Duration of a run after which it starts no more requests while other webhooks wait. */
  readonly runMs: number
  /**
   * Backoff of a webhook after an error inside ev, which would otherwise resend the event in a
   * loop.
   */
  readonly failureBackoffMs: number
}

export const DEFAULT_DELIVERY_TIMINGS: DeliveryTimings = {
  duePollMs: SECOND / 2,
  retryMs: SECOND,
  graceMs: 5 * SECOND,
  runMs: 2 * SECOND,
  failureBackoffMs: MINUTE,
}
