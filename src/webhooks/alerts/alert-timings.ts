import { MINUTE, SECOND } from '../../platform/clock.ts'
import { RETENTION_MS } from '../delivery-state.ts'

/** Intervals of the notices about webhooks, in ms. */
export type AlertTimings = {
  /** How often due notices are looked for; a notice is not urgent. */
  readonly pollMs: number
  /** Wait before a mail server that did not take a notice is asked again. */
  readonly retryMs: number
  /** After this a notice is not tried again: the events that it tells of are deleted by then. */
  readonly giveUpMs: number
  /** Wait before it is tried again to write that a notice went out. */
  readonly noteRetryMs: number
}

export const DEFAULT_ALERT_TIMINGS: AlertTimings = {
  pollMs: 10 * SECOND,
  retryMs: 5 * MINUTE,
  giveUpMs: RETENTION_MS,
  noteRetryMs: SECOND,
}
