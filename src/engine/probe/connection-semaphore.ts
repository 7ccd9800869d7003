import pLimit, { type LimitFunction } from 'p-limit'

/** The connections of lists that may be open at the same time, over all operators and egresses. */
export class ConnectionSemaphore {
  readonly #limit: LimitFunction

  constructor(max: number) {
    this.#limit = pLimit(max)
  }

  /** Waits for a place; the function that it gives hands the place back, and may be called twice. */
  take(): Promise<() => void> {
    return new Promise(taken => {
      void this.#limit(() => new Promise<void>(handBack => taken(handBack)))
    })
  }
}
