/** Answers after which what was heard before counts half: a list comes to other parts of itself. */
export const RECENT_OUTCOMES_MAX = 200

/** Recipients of an operator that were answered for lately. */
export class RecentOutcomes {
  #count = 0
  #refused = 0

  get count(): number {
    return this.#count
  }

  /** One more was answered for. */
  add(isRefused: boolean): void {
    this.#count++
    if (isRefused) this.#refused++
    if (this.#count < RECENT_OUTCOMES_MAX) return
    this.#count /= 2
    this.#refused /= 2
  }

  /** The share that was refused, for whatever reason; all, before anybody was asked. */
  get refusedShare(): number {
    return (this.#refused + 1) / (this.#count + 1)
  }
}
