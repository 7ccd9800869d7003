import type { Feed, Row } from './scheduler/feed.ts'

type Iterators = AsyncIterator<string> | Iterator<string>

/** Feeds the texts of an iterable, until it is exhausted, or `ending` aborts. */
export class TextFeed implements Feed<null> {
  readonly #texts: AsyncIterable<string> | Iterable<string>
  readonly #ending: AbortSignal
  /** Null before the first read. */
  #iterator: Iterators | null = null
  #isExhausted = false
  /** What the iterable threw after the texts that were read before. */
  #failure: { readonly error: unknown } | null = null
  /** Resolves the pending read with null. */
  #endRead: () => void = () => {}
  /** One listener for all reads: adding one per text would cost more than the read. */
  readonly #onAbort = () => this.#endRead()

  constructor(texts: AsyncIterable<string> | Iterable<string>, ending: AbortSignal) {
    this.#texts = texts
    this.#ending = ending
    ending.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** Resolves with null also when `ending` aborts during the wait. */
  async read(max: number): Promise<readonly Row<null>[] | null> {
    if (this.#failure !== null) throw this.#failure.error
    if (this.#isExhausted || this.#ending.aborted) return null
    try {
      if (Symbol.asyncIterator in this.#texts) {
        this.#iterator ??= this.#texts[Symbol.asyncIterator]()
        return await this.#readNext(this.#iterator as AsyncIterator<string>)
      }
      this.#iterator ??= this.#texts[Symbol.iterator]()
    } catch (error) {
      // An iterator that threw is exhausted and must not be closed (ECMA-262 §27.1.1.2).
      this.#isExhausted = true
      throw error
    }
    return this.#readPage(this.#iterator as Iterator<string>, max)
  }

  /** Closes the iterable, so that it can release its resources. */
  close(): void {
    this.#ending.removeEventListener('abort', this.#onAbort)
    if (this.#isExhausted) return
    this.#isExhausted = true
    // An error in closing is ignored: all results were delivered already.
    const closing = async () => this.#iterator?.return?.()
    closing().catch(() => {})
  }

  /** An asynchronous iterable may wait for each text, so a page has one. */
  #readNext(iterator: AsyncIterator<string>): Promise<readonly Row<null>[] | null> {
    return new Promise((resolve, reject) => {
      this.#endRead = () => resolve(null)
      iterator.next().then(({ done, value }) => {
        if (done === true) this.#isExhausted = true
        resolve(done === true ? null : [toRow(value)])
      }, reject)
    })
  }

  #readPage(iterator: Iterator<string>, max: number): readonly Row<null>[] | null {
    const page: Row<null>[] = []
    try {
      while (page.length < max) {
        const { done, value } = iterator.next()
        if (done === true) {
          this.#isExhausted = true
          break
        }
        page.push(toRow(value))
      }
    } catch (error) {
      this.#isExhausted = true
      if (page.length === 0) throw error
      this.#failure = { error }
    }
    return page.length === 0 ? null : page
  }
}

const toRow = (text: string): Row<null> => ({ item: null, text, history: null })
