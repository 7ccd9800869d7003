import { uptime } from 'node:os'
import { onAbort } from './abort.ts'

/** Time source. Tests inject a clock that they advance. */
export interface Clock {
  /** Wall-clock time, epoch ms. For timestamps that are shown or stored. */
  now(): number
  /** Monotonic time in ms since an arbitrary point. For durations: it never jumps. */
  monotonicNow(): number
  /**
   * Time in ms since an arbitrary point, including the time for which the machine was suspended.
   * Left out: `monotonicNow` includes it.
   */
  uptimeMs?(): number
  /** Calls `callback` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, callback: () => void): () => void
  /**
   * Returns whether the process was suspended at some time since then, monotonic ms. Left out if the
   * clock does not detect this.
   */
  suspendedSince?(at: number): boolean
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicNow: () => performance.now(),
  // The monotonic clock of Linux and macOS stops while the machine is suspended.
  uptimeMs: () => uptime() * SECOND,
  after(delayMs, callback) {
    // Node warns of a negative delay, which a deadline has that passed while other code ran.
    const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS))
    return () => clearTimeout(timer)
  },
}

/** setTimeout fires immediately for delays above 2^31-1 ms, so longer waits are capped. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Waits `delayMs` or until `signal` aborts. Resolves in both cases: the caller checks `signal`. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal?.aborted) return resolve()
    const wake = () => {
      cancel()
      unsubscribe?.()
      resolve()
    }
    const cancel = clock.after(delayMs, wake)
    const unsubscribe = signal === undefined ? undefined : onAbort(signal, wake)
  })
}

/** Resolves like `run`. Rejects with `message` after `timeoutMs`, or as soon as `signal` aborts. */
export function withTimeout<T>(
  clock: Clock,
  run: Promise<T>,
  o: { readonly timeoutMs: number; readonly message: string; readonly signal?: AbortSignal },
): Promise<T> {
  const settled = new AbortController()
  const ended =
    o.signal === undefined ? settled.signal : AbortSignal.any([settled.signal, o.signal])
  const timeout = sleep(clock, o.timeoutMs, ended).then(() => {
    throw new Error(o.message)
  })
  return Promise.race([run, timeout]).finally(() => settled.abort())
}

/**
 * Yields to the event loop once. Work that never waits for I/O would otherwise block signals and
 * timers.
 */
export const yieldToEventLoop = () => new Promise<void>(resolve => void setImmediate(resolve))

let nextTurn: Promise<void> | null = null

/**
 * Yields to the event loop and resumes all callers of one turn together. Responses sent in one
 * batch cost half as much as responses that each wake their reader.
 */
export function yieldBatched(): Promise<void> {
  nextTurn ??= yieldToEventLoop().then(() => {
    nextTurn = null
  })
  return nextTurn
}

export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
