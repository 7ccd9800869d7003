import type { Clock } from '../platform/clock.ts'

/** Tracks since when an egress has had no member, as seen by this process. */
export class EgressAbsence {
  readonly #clock: Clock
  readonly #startedAt: number
  readonly #seenAt = new Map<string, number>()
  #present: ReadonlySet<string> = new Set()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#startedAt = clock.monotonicNow()
  }

  /** Records the egresses that members have now. */
  note(names: readonly string[]): void {
    this.#present = new Set(names)
    for (const name of names) this.#seenAt.set(name, this.#clock.monotonicNow())
  }

  isPresent(name: string): boolean {
    return this.#present.has(name)
  }

  /** Returns how long an egress has been absent; one never seen counts from the start. */
  absentForMs(name: string): number {
    return this.#clock.monotonicNow() - (this.#seenAt.get(name) ?? this.#startedAt)
  }
}
