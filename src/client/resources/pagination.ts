/** A page of a list, with the cursor of the next one. */
export type Page<T> = {
  readonly items: T[]
  /** Null on the last page. */
  readonly next_cursor: string | null
  readonly has_more: boolean
}

/** A paginated list: `for await` iterates the items, `page()` fetches one page. */
export type Listing<T> = AsyncIterable<T> & {
  /** Fetches the first page, or the page at a cursor. */
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

/** Returns `data` of a response `{ success, data }`. */
export const unwrapData = async <T>(response: Promise<{ readonly data: T }>): Promise<T> =>
  (await response).data
