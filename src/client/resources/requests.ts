import type { CallOptions, Connection, CreateOptions } from '../connection.ts'

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

/** A response with its result in `data`. */
type Answer = { readonly data: unknown }

/** Returns functions that send a request and return its response, or `data` of it. */
export function createRequests({ json }: Connection) {
  const send = async <A extends Answer>(
    request: Parameters<Connection['json']>[0],
    options?: CreateOptions,
  ): Promise<A['data']> => (await json<A>(request, options)).data

  return {
    json,
    send,
    get: <A extends Answer>(path: string, options?: CallOptions, query?: object) =>
      send<A>({ method: 'GET', path, query }, options),
    /** Lists the items of all pages. */
    list: <A extends { readonly data: Page<unknown> }>(
      path: string,
      query: object | undefined,
      options?: CallOptions,
    ): Listing<A['data']['items'][number]> =>
      createListing(cursor =>
        send<A>({ method: 'GET', path, query: { ...query, cursor } }, options),
      ),
    delete: (path: string, options?: CallOptions, query?: object): Promise<void> =>
      json({ method: 'DELETE', path, query }, options),
  }
}
