/** Reads texts one at a time from an iterable, until it is exhausted, aborted or closed. */
export class Source {
  /** True if `read` may be called, because the iterable is synchronous. */
  readonly isSync: boolean
  readonly #iterator: AsyncIterator<string> | Iterator<string>
  readonly #ending: AbortSignal
  #exhausted = false
  /** Resolves the pending `next` with null. */
  #resolveNext: () => void = () => {}
  /** One listener for all reads: adding one per text would cost more than the read. */
  readonly #onAbort = () => this.#resolveNext()

  constructor(texts: AsyncIterable<string> | Iterable<string>, ending: AbortSignal) {
    this.#ending = ending
    this.isSync = !(Symbol.asyncIterator in texts)
    this.#iterator =
      Symbol.asyncIterator in texts ? texts[Symbol.asyncIterator]() : texts[Symbol.iterator]()
    ending.addEventListener('abort', this.#onAbort, { once: true })
  }

  /**
   * Returns the next text; null at the end of the source, or when `ending` aborts during the wait.
   */
  next(): Promise<{ readonly text: string } | null> {
    return new Promise((resolve, reject) => {
      this.#resolveNext = () => resolve(null)
      if (this.#ending.aborted) return this.#resolveNext()
      this.#read().then(resolve, reject)
    })
  }

  /** Does the same without waiting, for a synchronous iterable. */
  read(): { readonly text: string } | null {
    if (this.#ending.aborted) return null
    try {
      const step = (this.#iterator as Iterator<string>).next()
      if (step.done === true) this.#exhausted = true
      return step.done === true ? null : { text: step.value }
    } catch (error) {
      this.#exhausted = true
      throw error
    }
  }

  /** Closes the source, so that it can release its resources. */
  close(): void {
    this.#ending.removeEventListener('abort', this.#onAbort)
    if (this.#exhausted) return
    this.#exhausted = true
    // An error in closing is ignored: all results were delivered already.
    const closing = async () => this.#iterator.return?.()
    closing().catch(() => {})
  }

  async #read(): Promise<{ readonly text: string } | null> {
    try {
      const step = await this.#iterator.next()
      if (step.done === true) this.#exhausted = true
      return step.done === true ? null : { text: step.value }
    } catch (error) {
      // An iterator that threw is exhausted and must not be closed (ECMA-262 §27.1.1.2).
      this.#exhausted = true
      throw error
    }
  }
}
