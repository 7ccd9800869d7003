import type { Clock } from '../base/clock.ts'

/** Times so close to one another are one: thousands that fall due within a second are some timers. */
const SLOT_MS = 50
/** What is due later is found by whoever looks now and then. */
const HORIZON_MS = 2_000

/** Calls when something falls due soon, a little after rather than before. */
export class Alarm {
  readonly #clock: Clock
  readonly #call: () => void
  readonly #slots = new Map<number, () => void>()

  constructor(clock: Clock, call: () => void) {
    this.#clock = clock
    this.#call = call
  }

  set(waitMs: number): void {
    if (waitMs > HORIZON_MS) return
    const now = this.#clock.ticks()
    const slot = Math.ceil((now + waitMs) / SLOT_MS)
    if (this.#slots.has(slot)) return
    const ring = () => {
      this.#slots.delete(slot)
      this.#call()
    }
    this.#slots.set(slot, this.#clock.after(slot * SLOT_MS - now, ring))
  }

  cancel(): void {
    for (const cancel of this.#slots.values()) cancel()
    this.#slots.clear()
  }
}
