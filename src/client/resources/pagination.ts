/** A page of a list, and where the next one begins. */
export type Page<T> = {
  readonly items: T[]
  /** Null on the last page. */
  readonly next_cursor: string | null
  readonly has_more: boolean
}

/** A list that comes in pages: `for await` gives one item after the other, `page()` one page. */
export type Listing<T> = AsyncIterable<T> & {
  /** The first page, or the one that begins at a cursor. */
  page(cursor?: string): Promise<Page<T>>
}

export function createListing<T>(
  page: (cursor: string | undefined) => Promise<Page<T>>,
): Listing<T> {
  return {
    page: cursor => page(cursor),
    async *[Symbol.asyncIterator]() {
      let cursor: string | undefined
      do {
        const { items, next_cursor } = await page(cursor)
        yield* items
        cursor = next_cursor ?? undefined
      } while (cursor !== undefined)
    },
  }
}
