/** What is handed in while a batch is under way goes out as the next one: the busier, the fewer round trips. */
export class TurnBatcher<T> {
  readonly #send: (batch: readonly T[]) => Promise<void>
  #waiting: T[] = []
  /** The batch after the one that is under way. */
  #next: Promise<void> | null = null
  #underWay: Promise<void> = Promise.resolve()

  constructor(send: (batch: readonly T[]) => Promise<void>) {
    this.#send = send
  }

  /** Resolves, or fails, with the batch that these are part of. */
  add(items: readonly T[]): Promise<void> {
    for (const item of items) this.#waiting.push(item)
    this.#next ??= this.#follow(this.#underWay)
    return this.#next
  }

  /** When all that was handed in so far went out, or failed. */
  async quiet(): Promise<void> {
    await this.#next?.catch(() => {})
    await this.#underWay.catch(() => {})
  }

  async #follow(before: Promise<void>): Promise<void> {
    await before.catch(() => {})
    const batch = this.#waiting
    this.#waiting = []
    this.#next = null
    this.#underWay = this.#send(batch)
    await this.#underWay
  }
}
