import { type Clock, DAY, HOUR, MINUTE, SECOND } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'

/** What this process remembers of endpoints; by time that passes, so that a wall clock which jumps does no harm. */
export type EndpointBackoff = {
  /** Sends nothing to it for a while; `url` is where it was asked. */
  backOff(webhookId: string, forMs: number, url: string): void
  /** It is to be found there: what another place asked for holds no longer. */
  isAt(webhookId: string, url: string): void
  /** How long it is still to be left in peace; 0: it may be asked. */
  restMs(webhookId: string): number
  /** An attempt failed; gives since how long all do that this process made, without a stop, a sleep or a jump of the clock between. */
  failed(webhookId: string): number
  delivered(webhookId: string): void
  /** An attempt took so long. */
  took(webhookId: string, durationMs: number): void
  /** Whether it let us wait for long when it was asked last. */
  isSlow(webhookId: string): boolean
}

/** Whoever asks for more is asked again after this: it is the memory of one process, and everything else waits too. */
export const BACKOFF_MAX_MS = HOUR

export function createEndpointBackoff(clock: Clock): EndpointBackoff {
  const resting = new TtlMap<Backoff>({ sizeMax: SIZE_MAX, clock })
  const failing = new TtlMap<Failing>({ sizeMax: SIZE_MAX, clock })
  const slow = new TtlMap<{ durationMs: number }>({ sizeMax: SIZE_MAX, clock })
  return {
    backOff(webhookId, forMs, url) {
      const ttlMs = Math.min(forMs, BACKOFF_MAX_MS)
      if (ttlMs > this.restMs(webhookId)) {
        resting.set(webhookId, { until: clock.monotonicNow() + ttlMs, url }, ttlMs)
      }
    },
    isAt(webhookId, url) {
      const backOff = resting.get(webhookId)
      if (backOff !== undefined && backOff.url !== url) resting.delete(webhookId)
    },
    restMs: webhookId => Math.max(0, (resting.get(webhookId)?.until ?? 0) - clock.monotonicNow()),
    failed(webhookId) {
      const ticks = clock.monotonicNow()
      const offset = clock.now() - ticks
      const known = failing.get(webhookId)
      const isSame = known !== undefined && Math.abs(known.offset - offset) < JUMP_MS
      const since = isSame ? known.since : ticks
      failing.set(webhookId, { since, offset }, FAILURE_TTL_MS)
      return ticks - since
    },
    delivered: webhookId => failing.delete(webhookId),
    took(webhookId, durationMs) {
      if (durationMs < SLOW_MS) slow.delete(webhookId)
      else slow.set(webhookId, { durationMs }, FAILURE_TTL_MS)
    },
    isSlow: webhookId => slow.get(webhookId) !== undefined,
  }
}

type Backoff = { readonly until: number; readonly url: string }

type Failing = {
  /** Ticks of the clock. */
  readonly since: number
  /** From there to the wall clock: it grows while a machine sleeps. */
  readonly offset: number
}

/** More than a clock is corrected by in passing. */
const JUMP_MS = MINUTE
/** With more of them in trouble the oldest is forgotten: it is asked sooner than it wants, or switched off later. */
const SIZE_MAX = 10_000
/** Longer than the longest wait between two attempts. */
const FAILURE_TTL_MS = 2 * DAY
/** Receivers should do their work after the answer: hardly any needs a second. */
const SLOW_MS = 5 * SECOND
