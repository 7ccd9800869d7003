/** A counting semaphore. The slots go to the longest waits first. */
export class Semaphore {
  readonly #max: number
  #held = 0
  /** Resolves the `acquire` of each waiter, in the order of their calls. */
  readonly #waiting = new Set<(release: () => void) => void>()

  constructor(max: number) {
    this.#max = max
  }

  /** Waits for a slot and returns the function that releases it, which may be called twice. */
  acquire(): Promise<() => void> {
    const release = this.tryAcquire()
    if (release !== null) return Promise.resolve(release)
    return new Promise(acquired => this.#waiting.add(acquired))
  }

  /** Whether `tryAcquire` returns a slot. */
  get isFree(): boolean {
    return this.#held < this.#max
  }

  /** Takes a slot and returns the function that releases it; null if no slot is free. */
  tryAcquire(): (() => void) | null {
    if (!this.isFree) return null
    this.#held++
    return this.#slot()
  }

  #slot(): () => void {
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      const [next] = this.#waiting
      if (next === undefined) this.#held--
      else {
        this.#waiting.delete(next)
        next(this.#slot())
      }
    }
  }
}
