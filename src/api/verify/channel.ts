/** What is put in at one place and taken out at another, in its order. Whoever puts in keeps to a bound. */
export type Channel<T> = AsyncIterable<T> & {
  /** What comes after the end is dropped. */
  put(value: T): void
  /** What was put in before can still be taken out. */
  end(): void
}

/** For one who takes out. */
export function createChannel<T>(): Channel<T> {
  const values: T[] = []
  let isDone = false
  let wake = () => {}
  return {
    put(value) {
      if (!isDone) values.push(value)
      wake()
    },
    end() {
      isDone = true
      wake()
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        yield* values.splice(0)
        if (values.length > 0) continue
        if (isDone) return
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    },
  }
}
