/** A queue for one consumer. Its producer limits how many values it has. */
export class AsyncQueue<T extends object> {
  readonly #values: T[] = []
  #hasEnded = false
  #wake: () => void = () => {}

  get size(): number {
    return this.#values.length
  }

  /** Values put after `end` are dropped. */
  put(value: T): void {
    if (!this.#hasEnded && this.#values.push(value) === 1) this.#wake()
  }

  /** Values put before it can still be taken. */
  end(): void {
    this.#hasEnded = true
    this.#wake()
  }

  /** Removes and returns the next value; null if none is ready. */
  take(): T | null {
    return this.#values.shift() ?? null
  }

  /** Resolves with the next value; with null after the last one. */
  async next(): Promise<T | null> {
    while (this.#values.length === 0 && !this.#hasEnded) {
      await new Promise<void>(resolve => {
        this.#wake = resolve
      })
    }
    return this.take()
  }
}
