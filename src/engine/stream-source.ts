/** Texts taken one by one from whatever gives them, until it ends or is no longer wanted. */
export class Source {
  readonly #iterator: AsyncIterator<string> | Iterator<string>
  readonly #ending: AbortSignal
  #exhausted = false
  /** Ends the wait for the next text. */
  #end: () => void = () => {}
  /** One listener for all texts: a listener for each would cost more than the text. */
  readonly #onAbort = () => this.#end()

  constructor(texts: AsyncIterable<string> | Iterable<string>, ending: AbortSignal) {
    this.#ending = ending
    this.#iterator =
      Symbol.asyncIterator in texts ? texts[Symbol.asyncIterator]() : texts[Symbol.iterator]()
    ending.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** The next text; null when there is none, or when `ending` aborts while the source keeps us waiting. */
  next(): Promise<{ readonly text: string } | null> {
    return new Promise((resolve, reject) => {
      this.#end = () => resolve(null)
      if (this.#ending.aborted) return this.#end()
      this.#take().then(resolve, reject)
    })
  }

  /** Tells the source that nothing more is wanted, so that it closes what it holds. */
  close(): void {
    this.#ending.removeEventListener('abort', this.#onAbort)
    if (this.#exhausted) return
    this.#exhausted = true
    // A source that cannot be closed is its owner's affair; nobody waits for it any more.
    const closing = async () => this.#iterator.return?.()
    closing().catch(() => {})
  }

  async #take(): Promise<{ readonly text: string } | null> {
    try {
      const step = await this.#iterator.next()
      if (step.done === true) this.#exhausted = true
      return step.done === true ? null : { text: step.value }
    } catch (error) {
      // Who threw is at its end already (ECMA-262 §27.1.1.2).
      this.#exhausted = true
      throw error
    }
  }
}
