import { DAY, HOUR, MINUTE, SECOND } from '../platform/clock.ts'
import type { DisabledCode } from './endpoint.ts'

// The states of a delivery:
//
// | state              | event                                          | next state        |
// | ------------------ | ---------------------------------------------- | ----------------- |
// |                    | an event of the webhook is stored              | `pending`         |
// | `pending`          | a response with status 2xx                     | `delivered`       |
// | `pending`          | any other outcome, with attempts left          | `retry_scheduled` |
// | `pending`          | 410, the last attempt, or the one of a test    | `failed`          |
// | `retry_scheduled`  | its next attempt is due                        | as from `pending` |
// | any but `pending`  | it is retried by hand, or recovered (`failed`) | `pending`         |
//
// `delivered` and `failed` end a cycle: the delivery is deleted when `expires_at` has passed.

/** Delays before the retries, each counted from the failure before (spec 3.2). */
export const RETRY_DELAYS_MS = [1 * MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 24 * HOUR] as const
/**
 * The delays of sandbox events with `fastSandboxRetries`: a client's test sees all six attempts
 * within a minute.
 */
const FAST_RETRY_DELAYS_MS = [
  ...[1 * SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND, 16 * SECOND],
] as const
/** How long finished deliveries stay in the log and failed ones can be retried (spec 8). */
export const RETENTION_MS = 7 * DAY
/**
 * Retention of sandbox data: jobs with their rows, history, and delivered events. It is free, and a
 * client's tests are inspected on the same day.
 */
export const SANDBOX_RETENTION_MS = DAY

/** The response to an attempt. */
type Outcome = {
  /** Status of the response; null if there was none. */
  readonly status: number | null
  /** The Retry-After of the receiver in ms; null if there is none. */
  readonly retryAfterMs: number | null
}

/** The state of a delivery after an attempt. */
export type DeliveryTransition =
  | { readonly state: 'delivered'; readonly expiresAt: number }
  | { readonly state: 'retry_scheduled' /** Steady time. */; readonly dueAt: number }
  | { readonly state: 'failed'; readonly expiresAt: number }

type AttemptResult = {
  /** Earlier attempts in its cycle. */
  readonly attempt: number
  readonly trigger: 'scheduled' | 'manual' | 'test'
  readonly outcome: Outcome
  /** Whether it is a sandbox event. */
  readonly sandbox: boolean
  /** Whether sandbox events are retried within seconds. */
  readonly fastSandboxRetries?: boolean | undefined
  /** End of the attempt, epoch ms. */
  readonly now: number
  /** End of the attempt, epoch ms of the steady clock. */
  readonly steadyNow: number
}

/** Returns the state of a delivery after an attempt. */
export function nextState({
  attempt,
  trigger,
  outcome,
  sandbox,
  fastSandboxRetries = false,
  now,
  steadyNow,
}: AttemptResult): DeliveryTransition {
  const { status, retryAfterMs } = outcome
  if (isDelivered(status)) {
    return { state: 'delivered', expiresAt: now + (sandbox ? SANDBOX_RETENTION_MS : RETENTION_MS) }
  }
  // A test is not retried because its result is shown at once, and a 410 is permanent.
  const delays = sandbox && fastSandboxRetries ? FAST_RETRY_DELAYS_MS : RETRY_DELAYS_MS
  const delayMs = trigger === 'test' || status === GONE ? undefined : delays[attempt]
  if (delayMs === undefined) return { state: 'failed', expiresAt: now + RETENTION_MS }
  const requestedMs = Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS)
  return { state: 'retry_scheduled', dueAt: steadyNow + Math.max(delayMs, requestedMs) }
}

export const isDelivered = (status: number | null): boolean =>
  status !== null && status >= 200 && status <= 299

/** 410 Gone: the receiver accepts no more events (Standard Webhooks: stop sending). */
export const GONE = 410

/** Statuses of an overloaded receiver. With a Retry-After, all deliveries to it wait. */
export const RETRY_LATER_STATUSES: ReadonlySet<number> = new Set([429, 503])

type Failing = {
  /** Status of the response; null if there was none. */
  readonly status: number | null
  /** When the current series of failed attempts began; null if the last one succeeded. */
  readonly failingSince: number | null
  /** How long this process has seen them fail, monotonic time. */
  readonly seenMs: number
  readonly now: number
}

/** Returns the reason to disable a webhook after a failed attempt; null: it stays active. */
export function disabledCode({ status, failingSince, seenMs, now }: Failing): DisabledCode | null {
  if (status === GONE) return 'gone'
  // A machine that slept or a service that was stopped for five days made no attempts in that time.
  if (failingSince === null || seenMs < SEEN_FAILING_MIN_MS) return null
  return now - failingSince < FAILING_MAX_MS ? null : 'failing'
}

/**
 * An endpoint that has been unreachable for this long seems abandoned (Svix has the same limit).
 */
const FAILING_MAX_MS = 5 * DAY
/** Time for the network to recover after a start. */
const SEEN_FAILING_MIN_MS = HOUR

/** Upper limit for Retry-After: by then the receiver may have recovered. */
const RETRY_AFTER_MAX_MS = 24 * HOUR

/**
 * Parses a Retry-After header (RFC 9110 §10.2.3: seconds or a date) into ms. Returns null if it is
 * invalid.
 */
export function retryAfterMs(header: string | undefined, now: number): number | null {
  const text = header?.trim() ?? ''
  if (/^\d+$/.test(text)) return Number(text) * SECOND
  if (!HTTP_DATE.test(text)) return null
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

/**
 * RFC 9110 §5.6.7: IMF-fixdate and the RFC 850 form with a long day name. The asctime form has no
 * time zone and is not used in practice.
 */
const HTTP_DATE = /^[A-Z][a-z]{2,8}, \d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} GMT$/
