import { DAY, HOUR, MINUTE, SECOND } from '../platform/clock.ts'
import type { DisabledCode } from './endpoint.ts'

/** After the first attempt come these, each so long after the one before it failed (spec 3.2). */
export const RETRY_DELAYS_MS = [1 * MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 24 * HOUR] as const
/** How long what ended stays in the log, and what failed can be sent again (spec 8). */
export const RETENTION_MS = 7 * DAY
/**
 * How long what was simulated is kept: jobs with their rows, history, and events that were delivered. Nobody pays for
 * it, and a test of a client is looked at on the day.
 */
export const SANDBOX_RETENTION_MS = DAY

/** What an attempt brought. */
export type Outcome = {
  /** Of the answer; null: there was none. */
  readonly status: number | null
  /** How long the receiver asks us to wait, in ms; null: it does not say. */
  readonly retryAfterMs: number | null
}

/** How it goes on with a delivery. */
export type DeliveryTransition =
  | { readonly state: 'delivered'; readonly expiresAt: number }
  | { readonly state: 'retry_scheduled'; readonly dueAt: number }
  | { readonly state: 'failed'; readonly expiresAt: number }

export type AttemptResult = {
  /** Attempts of its round before this one. */
  readonly attempt: number
  readonly trigger: 'scheduled' | 'manual' | 'test'
  readonly outcome: Outcome
  /** Whether its event was simulated. */
  readonly sandbox: boolean
  /** When it ended, epoch ms. */
  readonly now: number
}

/** What becomes of a delivery after an attempt. */
export function nextState({
  attempt,
  trigger,
  outcome,
  sandbox,
  now,
}: AttemptResult): DeliveryTransition {
  const { status, retryAfterMs } = outcome
  if (isDelivered(status)) {
    return { state: 'delivered', expiresAt: now + (sandbox ? SANDBOX_RETENTION_MS : RETENTION_MS) }
  }
  // Whoever tries an endpoint out waits for what comes of it, and one that is gone does not come back.
  const delayMs = trigger === 'test' || status === GONE ? undefined : RETRY_DELAYS_MS[attempt]
  if (delayMs === undefined) return { state: 'failed', expiresAt: now + RETENTION_MS }
  const askedMs = Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS)
  return { state: 'retry_scheduled', dueAt: now + Math.max(delayMs, askedMs) }
}

export const isDelivered = (status: number | null): boolean =>
  status !== null && status >= 200 && status <= 299

/** The receiver says that nothing is wanted here any more (Standard Webhooks: stop sending). */
export const GONE = 410

/** Statuses of a receiver that has too much to do: with a Retry-After, all that is on its way to it waits. */
export const RETRY_LATER_STATUSES: ReadonlySet<number> = new Set([429, 503])

export type Failing = {
  /** Of the answer; null: there was none. */
  readonly status: number | null
  /** When the first of the attempts failed that failed one after the other until now; null: there was none before. */
  readonly failingSince: number | null
  /** How long this process has seen them fail, by time that passed. */
  readonly seenMs: number
  readonly now: number
}

/** Why a webhook is switched off with an attempt that failed; null: it is not. */
export function disabledCode({ status, failingSince, seenMs, now }: Failing): DisabledCode | null {
  if (status === GONE) return 'gone'
  // A machine that slept, or a service that was stopped, for five days has not tried for five days.
  if (failingSince === null || seenMs < SEEN_FAILING_MIN_MS) return null
  return now - failingSince < FAILING_MAX_MS ? null : 'failing'
}

/** Nobody seems to look after an endpoint that was not reached once for so long (as Svix does). */
const FAILING_MAX_MS = 5 * DAY
/** Time for a network to come back after a start. */
const SEEN_FAILING_MIN_MS = HOUR

/** A receiver that asks for more is asked again after this: by then it may have changed its mind. */
const RETRY_AFTER_MAX_MS = 24 * HOUR

/** No attempt is further away from the one before. */
export const WAIT_MAX_MS = Math.max(RETRY_AFTER_MAX_MS, ...RETRY_DELAYS_MS)

/** What a Retry-After header asks for (RFC 9110 §10.2.3: seconds, or a date); null: nothing that can be read. */
export function retryAfterMs(header: string | undefined, now: number): number | null {
  const text = header?.trim() ?? ''
  if (/^\d+$/.test(text)) return Number(text) * SECOND
  if (!HTTP_DATE.test(text)) return null
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

/** RFC 9110 §5.6.7, and the older form with a long name of the day; the oldest has no time zone, and nobody sends it. */
const HTTP_DATE = /^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/
