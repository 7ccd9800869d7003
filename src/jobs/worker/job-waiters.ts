/** Who waits for the next change of something, by its key. */
export class JobWaiters<T> {
  readonly #waiting = new Map<string, Set<(value: T | null) => void>>()

  /** Resolves with what `tell` is told next, or with null when `signal` aborts or nothing more is told. */
  next(key: string, signal: AbortSignal): Promise<T | null> {
    if (signal.aborted) return Promise.resolve(null)
    return new Promise(resolve => {
      const waiting = this.#waiting.get(key) ?? new Set()
      this.#waiting.set(key, waiting)
      const over = (value: T | null) => {
        signal.removeEventListener('abort', onAbort)
        waiting.delete(over)
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key)
        resolve(value)
      }
      const onAbort = () => over(null)
      waiting.add(over)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** What somebody waits for. */
  get keys(): readonly string[] {
    return [...this.#waiting.keys()]
  }

  notify(key: string, value: T | null): void {
    for (const over of [...(this.#waiting.get(key) ?? [])]) over(value)
  }

  /** Nothing more is told. */
  end(): void {
    for (const key of [...this.#waiting.keys()]) this.notify(key, null)
  }
}
