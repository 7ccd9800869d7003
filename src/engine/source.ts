/** Texts taken one by one from whatever gives them, until it ends or is no longer wanted. */
export class Source {
  readonly #iterator: AsyncIterator<string> | Iterator<string>
  readonly #ending: AbortSignal
  #exhausted = false

  constructor(texts: AsyncIterable<string> | Iterable<string>, ending: AbortSignal) {
    this.#ending = ending
    this.#iterator =
      Symbol.asyncIterator in texts ? texts[Symbol.asyncIterator]() : texts[Symbol.iterator]()
  }

  /** The next text; null when there is none, or when `ending` aborts while the source keeps us waiting. */
  next(): Promise<{ readonly text: string } | null> {
    return new Promise((resolve, reject) => {
      const end = () => resolve(null)
      const settled = () => this.#ending.removeEventListener('abort', end)
      if (this.#ending.aborted) return end()
      this.#ending.addEventListener('abort', end, { once: true })
      this.#take().then(resolve, reject).finally(settled)
    })
  }

  /** Tells the source that nothing more is wanted, so that it closes what it holds. */
  close(): void {
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
