import type { Clock } from '../base/clock.ts'
import { DEFAULT_QUEUE_TIMINGS, type QueueTimings } from './queue-timings.ts'

/** Calls when something falls due soon, a little after rather than before. */
export class Alarm {
  readonly #clock: Clock
  readonly #call: () => void
  readonly #slotMs: number
  readonly #horizonMs: number
  readonly #slots = new Map<number, () => void>()

  constructor(
    clock: Clock,
    call: () => void,
    timings: Pick<QueueTimings, 'alarmSlotMs' | 'alarmHorizonMs'> = DEFAULT_QUEUE_TIMINGS,
  ) {
    this.#clock = clock
    this.#call = call
    this.#slotMs = timings.alarmSlotMs
    this.#horizonMs = timings.alarmHorizonMs
  }

  set(waitMs: number): void {
    if (waitMs > this.#horizonMs) return
    const now = this.#clock.ticks()
    const slot = Math.ceil((now + waitMs) / this.#slotMs)
    if (this.#slots.has(slot)) return
    const ring = () => {
      this.#slots.delete(slot)
      this.#call()
    }
    this.#slots.set(slot, this.#clock.after(slot * this.#slotMs - now, ring))
  }

  cancel(): void {
    for (const cancel of this.#slots.values()) cancel()
    this.#slots.clear()
  }
}
