import { MINUTE, SECOND } from '../../platform/clock.ts'

/** Intervals and timeouts of the delivery of events, in ms. */
export type DeliveryTimings = {
  /** How often due deliveries are looked for. */
  readonly dueLookMs: number
  /** Wait after a look or a commit failed; also how often the log tells of it. */
  readonly retryMs: number
  /** At the end, how long requests may take; what is not answered then is sent again. */
  readonly graceMs: number
  /** While other webhooks wait for a turn, none begins a request after this. */
  readonly turnMs: number
  /** How long a webhook rests after a failure inside ev, which would send the event repeatedly. */
  readonly failureBackoffMs: number
}

export const DEFAULT_DELIVERY_TIMINGS: DeliveryTimings = {
  dueLookMs: SECOND / 2,
  retryMs: SECOND,
  graceMs: 5 * SECOND,
  turnMs: 2 * SECOND,
  failureBackoffMs: MINUTE,
}
