import { type Clock, SECOND } from '../../platform/clock.ts'
import { withResolvers } from '../../platform/es2024.ts'

/** How long items that are taken from memory are counted. */
const WINDOW_MS = SECOND / 10
/**
 * Fewer items than this per window, 1,000 per second, and waiting for room would slow routing down
 * more than it saves: storing an item and claiming it again takes 100 µs.
 */
const TAKEN_MIN = 100
/** How long routing does not wait after a window with fewer items. */
const PAUSE_MS = SECOND

/**
 * Decides whether routing waits while memory is full: only as long as connections take items
 * quickly, not if those in memory wait for slow operators.
 */
export class DrainMonitor {
  readonly #clock: Clock
  #waiting: PromiseWithResolvers<boolean> | null = null
  #isCounting = false
  #taken = 0
  /** Monotonic time in ms. */
  #pausedUntil = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves with true when items are taken; with false if too few are. */
  nextTake(): Promise<boolean> {
    if (this.#clock.monotonicNow() < this.#pausedUntil) return Promise.resolve(false)
    if (!this.#isCounting) this.#startWindow()
    this.#waiting ??= withResolvers<boolean>()
    return this.#waiting.promise
  }

  onTaken(count: number): void {
    this.#taken += count
    this.#resume(true)
  }

  #startWindow() {
    this.#isCounting = true
    this.#taken = 0
    this.#clock.after(WINDOW_MS, () => this.#endWindow())
  }

  #endWindow() {
    this.#isCounting = false
    if (this.#taken < TAKEN_MIN) {
      this.#pausedUntil = this.#clock.monotonicNow() + PAUSE_MS
      this.#resume(false)
    } else if (this.#waiting !== null) this.#startWindow()
  }

  #resume(isTaken: boolean) {
    this.#waiting?.resolve(isTaken)
    this.#waiting = null
  }
}
