import { DAY, HOUR, MINUTE } from '../base/clock.ts'

/** After the first attempt come these, each so long after the one before it failed (spec 3.2). */
export const RETRY_DELAYS_MS = [1 * MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 24 * HOUR] as const
/** How long what ended stays in the log, and what failed can be sent again (spec 8). */
export const KEPT_MS = 7 * DAY

/** What an attempt brought. */
export type Outcome = {
  /** Of the answer; null: there was none. */
  readonly status: number | null
  /** How long the receiver asks us to wait, in ms; null: it does not say. */
  readonly retryAfterMs: number | null
}

/** How it goes on with a delivery. */
export type Next =
  | { readonly state: 'delivered'; readonly expiresAt: number }
  | { readonly state: 'retry_scheduled'; readonly dueAt: number }
  | { readonly state: 'failed'; readonly expiresAt: number }
