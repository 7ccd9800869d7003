import { type Clock, SECOND } from './clock.ts'

/**
 * A timer that fires this late was not delayed by other work: the process was stopped, the machine
 * slept, or its event loop was blocked. Shorter than any time limit of a session.
 */
const LATE_MS = 2 * SECOND

/**
 * Wraps a clock so that it detects when the process does not run: by timers that fire or are
 * cancelled late, and by the wall clock, because the monotonic clock of Linux stands still while the
 * machine sleeps. Each operation with a time limit thus detects what has affected it when it ends. A
 * wall clock that was set forward counts as a suspension too, which only repeats a probe.
 */
export function detectSuspensions(clock: Clock): Clock {
  /** When the last suspension was detected, monotonic ms. */
  let detectedAt = Number.NEGATIVE_INFINITY
  let lastOffset = clock.now() - clock.monotonicNow()

  const detect = (dueAt: number) => {
    const now = clock.monotonicNow()
    const offset = clock.now() - now
    if (now - dueAt > LATE_MS || offset - lastOffset > LATE_MS) detectedAt = now
    lastOffset = offset
  }
  return {
    now: () => clock.now(),
    monotonicNow: () => clock.monotonicNow(),
    after(delayMs, callback) {
      const dueAt = clock.monotonicNow() + Math.max(0, delayMs)
      let cancel: (() => void) | null = clock.after(delayMs, () => {
        if (cancel !== null) detect(dueAt)
        cancel = null
        callback()
      })
      return () => {
        // After a suspension, the data of sockets is delivered before timers fire.
        if (cancel !== null) detect(dueAt)
        cancel?.()
        cancel = null
      }
    },
    suspendedSince(at) {
      detect(Number.POSITIVE_INFINITY)
      return detectedAt >= at
    },
  }
}

/** Whether the process was suspended at some time since then, monotonic ms. */
export const wasSuspended = (clock: Clock, since: number): boolean =>
  clock.suspendedSince?.(since) ?? false
