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
import { createRequests, type Listing } from './requests.ts'

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

export function createAccountResource(connection: Connection): Account {
  const { get, list } = createRequests(connection)
  return {
    history: (query, options) => list<HistoryPage>('/v1/history', query, options),
    audit: (query, options) => list<AuditPage>('/v1/audit', query, options),
    credits: options => get<Credits>('/v1/credits', options),
    limits: async options => (await get<Limits>('/v1/limits', options)).limits,
    stats: (query, options) => get<Stats>('/v1/stats', options, query),
  }
}
