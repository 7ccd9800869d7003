import pLimit, { type LimitFunction } from 'p-limit'

/** A counting semaphore, such as for the concurrent connections of lists over all operators. */
export class ConnectionSemaphore {
  readonly #limit: LimitFunction

  constructor(max: number) {
    this.#limit = pLimit(max)
  }

  /** Waits for a slot and returns the function that releases it, which may be called twice. */
  acquire(): Promise<() => void> {
    return new Promise(acquired => {
      void this.#limit(() => new Promise<void>(release => acquired(release)))
    })
  }
}
