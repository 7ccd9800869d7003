import type { Clock } from '../platform/clock.ts'

/** Since when nobody asks by an egress, as far as this process has seen. */
export class EgressAbsence {
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #seenAt = new Map<string, number>()
  #present: ReadonlySet<string> = new Set()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#startedAt = clock.monotonicNow()
  }

  /** All by which somebody asks now. */
  note(names: readonly string[]): void {
    this.#present = new Set(names)
    for (const name of names) this.#seenAt.set(name, this.#clock.monotonicNow())
  }

  isPresent(name: string): boolean {
    return this.#present.has(name)
  }

  /** For how long; of one that was never seen, since we began to look. */
  ofMs(name: string): number {
    return this.#clock.monotonicNow() - (this.#seenAt.get(name) ?? this.#startedAt)
  }
}
