import { type Clock, DAY, HOUR, MINUTE, SECOND } from '../platform/clock.ts'
import { TtlMap } from '../platform/ttl-map.ts'

/**
 * The state of endpoints in this process. It uses monotonic time, so that jumps of the wall clock
 * do no harm.
 */
export type EndpointBackoff = {
  /** Pauses a webhook; `url` is its current URL. */
  backOff(webhookId: string, forMs: number, url: string): void
  /** Ends the backoff if the URL has changed since. */
  resetIfMoved(webhookId: string, url: string): void
  /** Remaining backoff; 0 if there is none. */
  backoffMs(webhookId: string): number
  /**
   * Records a failed attempt. Returns how long the current series of failures lasts, as seen by
   * this process without a restart, sleep or clock jump in between.
   */
  failed(webhookId: string): number
  delivered(webhookId: string): void
  /** Records the duration of an attempt. */
  recordDuration(webhookId: string, durationMs: number): void
  /** Whether its last attempt was slow. */
  isSlow(webhookId: string): boolean
}

/**
 * Upper limit for Retry-After of an overloaded receiver: it delays all deliveries to it, and only
 * this process knows it.
 */
const BACKOFF_MAX_MS = HOUR

export function createEndpointBackoff(clock: Clock): EndpointBackoff {
  const backoffs = new TtlMap<Backoff>({ sizeMax: SIZE_MAX, clock })
  const failing = new TtlMap<Failing>({ sizeMax: SIZE_MAX, clock })
  const slow = new TtlMap<{ durationMs: number }>({ sizeMax: SIZE_MAX, clock })
  return {
    backOff(webhookId, forMs, url) {
      const ttlMs = Math.min(forMs, BACKOFF_MAX_MS)
      if (ttlMs > this.backoffMs(webhookId)) {
        backoffs.set(webhookId, { until: clock.monotonicNow() + ttlMs, url }, ttlMs)
      }
    },
    resetIfMoved(webhookId, url) {
      const backOff = backoffs.get(webhookId)
      if (backOff !== undefined && backOff.url !== url) backoffs.delete(webhookId)
    },
    backoffMs: webhookId =>
      Math.max(0, (backoffs.get(webhookId)?.until ?? 0) - clock.monotonicNow()),
    failed(webhookId) {
      const monotonicMs = clock.monotonicNow()
      const offset = clock.now() - monotonicMs
      const previous = failing.get(webhookId)
      const isContinued = previous !== undefined && Math.abs(previous.offset - offset) < JUMP_MS
      const since = isContinued ? previous.since : monotonicMs
      failing.set(webhookId, { since, offset }, FAILURE_TTL_MS)
      return monotonicMs - since
    },
    delivered: webhookId => failing.delete(webhookId),
    recordDuration(webhookId, durationMs) {
      if (durationMs < SLOW_MS) slow.delete(webhookId)
      else slow.set(webhookId, { durationMs }, FAILURE_TTL_MS)
    },
    isSlow: webhookId => slow.get(webhookId) !== undefined,
  }
}

type Backoff = { readonly until: number; readonly url: string }

type Failing = {
  /** Monotonic time, ms. */
  readonly since: number
  /** Wall clock minus monotonic clock, which grows while a machine sleeps. */
  readonly offset: number
}

/** More than a regular clock correction. */
const JUMP_MS = MINUTE
/**
 * With more endpoints than this, the oldest entry is dropped: that endpoint gets a request too
 * early or is disabled later.
 */
const SIZE_MAX = 10_000
/** Longer than the longest wait between two attempts. */
const FAILURE_TTL_MS = 2 * DAY
/** Receivers should respond before they process an event: hardly any needs a second. */
const SLOW_MS = 5 * SECOND
