import type { CallOptions, Connection } from '../connection/connection.ts'
import type { Credits, GetStatsQuery, HistoryItem, ListHistoryQuery, Stats } from '../types.ts'
import { createListing, type Listing, type Page } from './listing.ts'

export type Account = {
  /** What was verified, the newest first. */
  history(query?: Omit<ListHistoryQuery, 'cursor'>, options?: CallOptions): Listing<HistoryItem>
  credits(options?: CallOptions): Promise<Credits>
  stats(query?: GetStatsQuery, options?: CallOptions): Promise<Stats>
}

export function accountRoom({ json }: Connection): Account {
  const get = async <T>(path: string, query: object | undefined, options?: CallOptions) => {
    const request = { method: 'GET', path, query, repeatable: 'yes' } as const
    return (await json<{ data: T }>(request, options)).data
  }

  return {
    history: (query, options) =>
      createListing(cursor => get<Page<HistoryItem>>('/v1/history', { ...query, cursor }, options)),
    credits: options => get('/v1/credits', undefined, options),
    stats: (query, options) => get('/v1/stats', query, options),
  }
}
