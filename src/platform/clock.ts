/** The time, as a door to the world: tests hand in a clock that moves when told. */
export interface Clock {
  /** Wall-clock time, epoch ms. For dates that people see and that outlive the process. */
  now(): number
  /** Monotonic time in ms from some fixed point. For durations: it never jumps. */
  monotonicNow(): number
  /** Calls `callback` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, callback: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicNow: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(delayMs, LONGEST_TIMER_MS))
    return () => clearTimeout(timer)
  },
}

/** setTimeout fires at once for anything above 2^31-1 ms, so longer waits are cut to this. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Waits `delayMs`, or less if `signal` aborts. Resolves in both cases: the caller looks at the signal. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal?.aborted) return resolve()
    const wake = () => {
      cancel()
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const cancel = clock.after(delayMs, wake)
    signal?.addEventListener('abort', wake, { once: true })
  })
}

/** Lets the event loop turn once: work that never waits for the world would else keep signals and timers out. */
export const yieldToEventLoop = () => new Promise<void>(resolve => void setImmediate(resolve))

let nextTurn: Promise<void> | null = null

/**
 * The same for all who wait for it in one turn: they go on one right after the other. Answers that are sent so cost
 * the system half as much as answers that each wake their reader.
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
