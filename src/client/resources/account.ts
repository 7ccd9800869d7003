import type { CallOptions, Connection } from '../connection.ts'
import type {
  Credits,
  GetStatsQuery,
  HistoryPage,
  Limits,
  ListHistoryQuery,
  Stats,
  Verification,
} from '../types.ts'
import { dataOf } from './data.ts'
import { createListing, type Listing } from './pagination.ts'

export type Account = {
  /** What was verified, the newest first. */
  history(query?: Omit<ListHistoryQuery, 'cursor'>, options?: CallOptions): Listing<Verification>
  credits(options?: CallOptions): Promise<Credits['data']>
  /** What is left of each limit that holds for this key and this machine. */
  limits(options?: CallOptions): Promise<Limits['data']['limits']>
  /** Verifications by day and by key. */
  stats(query?: GetStatsQuery, options?: CallOptions): Promise<Stats['data']>
}

export function accountRoom({ json }: Connection): Account {
  const get = <Answer>(path: string, query: object | undefined, options?: CallOptions) =>
    json<Answer>({ method: 'GET', path, query }, options)

  return {
    history: (query, options) =>
      createListing(cursor =>
        dataOf(get<HistoryPage>('/v1/history', { ...query, cursor }, options)),
      ),
    credits: options => dataOf(get<Credits>('/v1/credits', undefined, options)),
    limits: async options => (await dataOf(get<Limits>('/v1/limits', undefined, options))).limits,
    stats: (query, options) => dataOf(get<Stats>('/v1/stats', query, options)),
  }
}
