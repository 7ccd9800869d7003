import type { CallOptions, Connection } from '../connection.ts'
import type {
  AuditEntry,
  AuditPage,
  Credits,
  GetStatsQuery,
  HistoryPage,
  Limits,
  ListAuditEntriesQuery,
  ListHistoryQuery,
  Stats,
  Verification,
} from '../types.ts'
import { createListing, type Listing, unwrapData } from './pagination.ts'

export type Account = {
  /** Lists verifications, newest first. */
  history(query?: Omit<ListHistoryQuery, 'cursor'>, options?: CallOptions): Listing<Verification>
  credits(options?: CallOptions): Promise<Credits['data']>
  /** Returns the usage of each rate limit that applies to this key and IP address. */
  limits(options?: CallOptions): Promise<Limits['data']['limits']>
  /** Lists the audit log, newest first. */
  audit(query?: Omit<ListAuditEntriesQuery, 'cursor'>, options?: CallOptions): Listing<AuditEntry>
  /** Returns verification counts by day and by key. */
  stats(query?: GetStatsQuery, options?: CallOptions): Promise<Stats['data']>
}

export function createAccountResource({ json }: Connection): Account {
  const get = <Answer>(path: string, query: object | undefined, options?: CallOptions) =>
    json<Answer>({ method: 'GET', path, query }, options)

  return {
    history: (query, options) =>
      createListing(cursor =>
        unwrapData(get<HistoryPage>('/v1/history', { ...query, cursor }, options)),
      ),
    audit: (query, options) =>
      createListing(cursor =>
        unwrapData(get<AuditPage>('/v1/audit', { ...query, cursor }, options)),
      ),
    credits: options => unwrapData(get<Credits>('/v1/credits', undefined, options)),
    limits: async options =>
      (await unwrapData(get<Limits>('/v1/limits', undefined, options))).limits,
    stats: (query, options) => unwrapData(get<Stats>('/v1/stats', query, options)),
  }
}
