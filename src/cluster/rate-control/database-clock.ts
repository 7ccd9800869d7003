import { type Clock, SECOND } from '../../platform/clock.ts'

/** What was heard longer ago may be of a clock that was set since. */
const TRUSTED_MS = 10 * SECOND

/** The database's clock, as far as it is known here: behind it by the way of its answers, and never ahead. */
export class DatabaseClock {
  readonly #clock: Clock
  #offset: number
  #heardAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
    this.#offset = clock.now() - clock.monotonicNow()
  }

  /** An answer of the database has just come, with its time, epoch ms. */
  heard(now: number): void {
    const ticks = this.#clock.monotonicNow()
    const offset = now - ticks
    if (offset <= this.#offset && ticks - this.#heardAt < TRUSTED_MS) return
    this.#offset = offset
    this.#heardAt = ticks
  }

  now(): number {
    return this.#clock.monotonicNow() + this.#offset
  }
}
