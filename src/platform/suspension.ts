import { type Clock, SECOND } from './clock.ts'

/**
 * A timer that fires this late was not delayed by other work: the process was stopped, the machine
 * slept, or its event loop was blocked. Shorter than any time limit of a session.
 */
const LATE_MS = 2 * SECOND

/**
 * Wraps a clock so that it detects when the process does not run: by timers that fire late, or are
 * overdue, and by the wall clock, because the monotonic clock of Linux stands still while the machine
 * sleeps. A wall clock that was set forward counts as a suspension too, which only repeats a probe.
 */
export function detectSuspensions(clock: Clock): Clock {
  /** Number of pending timers by the second in which they are due, monotonic. */
  const pending = new Map<number, number>()
  const count = (second: number, change: 1 | -1) => {
    const after = (pending.get(second) ?? 0) + change
    if (after === 0) pending.delete(second)
    else pending.set(second, after)
  }
  /** When the last suspension was detected, monotonic ms. */
  let detectedAt = Number.NEGATIVE_INFINITY
  const wallOffset = () => clock.now() - clock.monotonicNow()
  let lastOffset = wallOffset()

  const detect = (isLate: boolean) => {
    const offset = wallOffset()
    if (isLate || offset - lastOffset > LATE_MS) detectedAt = clock.monotonicNow()
    lastOffset = offset
  }
  const hasOverdue = () => {
    const before = clock.monotonicNow() - LATE_MS
    for (const second of pending.keys()) if (second * SECOND < before) return true
    return false
  }
  return {
    now: () => clock.now(),
    monotonicNow: () => clock.monotonicNow(),
    after(delayMs, callback) {
      const dueAt = clock.monotonicNow() + Math.max(0, delayMs)
      const second = Math.ceil(dueAt / SECOND)
      count(second, 1)
      let isPending = true
      const end = () => {
        if (isPending) count(second, -1)
        isPending = false
      }
      const cancel = clock.after(delayMs, () => {
        end()
        detect(clock.monotonicNow() - dueAt > LATE_MS)
        callback()
      })
      return () => {
        end()
        cancel()
      }
    },
    suspendedSince(at) {
      // After a suspension, the data of sockets is delivered before timers fire.
      detect(hasOverdue())
      return detectedAt >= at
    },
  }
}

/** Whether the process was suspended at some time since then, monotonic ms. */
export const wasSuspended = (clock: Clock, since: number): boolean =>
  clock.suspendedSince?.(since) ?? false
