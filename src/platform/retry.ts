import { type Clock, sleep } from './clock.ts'

export type RetryOptions = {
  readonly clock: Clock
  /** Whether a retry may succeed after this error. */
  readonly isRetryable: (error: unknown) => boolean
  /** Wait after a failed attempt; `attempt` counts from 1. Default: none. */
  readonly delayMs?: number | ((attempt: number) => number)
  readonly attemptsMax?: number
  /** No attempt starts after this monotonic time, ms. */
  readonly until?: number
  /** Ends the wait; the attempt that follows is the last. */
  readonly signal?: AbortSignal
  /** Called before each wait. */
  readonly onRetry?: (error: unknown, attempt: number) => void
}

/** Calls `run` until it succeeds; rejects with the last error when no attempt is left. */
export async function retry<T>(run: () => Promise<T>, o: RetryOptions): Promise<T> {
  const { clock, attemptsMax = Number.POSITIVE_INFINITY, until = Number.POSITIVE_INFINITY } = o
  for (let attempt = 1; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      const isLast = attempt >= attemptsMax || clock.monotonicNow() > until || o.signal?.aborted
      if (isLast || !o.isRetryable(error)) throw error
      o.onRetry?.(error, attempt)
      const { delayMs = 0 } = o
      const waitMs = typeof delayMs === 'number' ? delayMs : delayMs(attempt)
      if (waitMs > 0) await sleep(clock, waitMs, o.signal)
    }
  }
}

/** Exponential backoff: `minMs`, then twice as long after each failure, up to `maxMs`. */
export const backoff = (minMs: number, maxMs: number) => (attempt: number) =>
  Math.min(maxMs, minMs * 2 ** (attempt - 1))
