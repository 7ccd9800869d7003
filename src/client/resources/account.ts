import type { CallOptions, Connection } from '../connection.ts'
import type {
  AccountAnswer,
  AuditEntry,
  AuditPage,
  Credits,
  GetStatsQuery,
  HistoryPage,
  Limits,
  ListAuditEntriesQuery,
  ListHistoryQuery,
  OwnAccountPatch,
  Stats,
  Verification,
} from '../types.ts'
import { createRequests, type Listing } from './requests.ts'

export type Account = {
  account: {
    /** Returns the account of the key. */
    get(options?: CallOptions): Promise<AccountAnswer['data']>
    /** Changes its name or email address; omitted fields keep their value. */
    update(changes: OwnAccountPatch, options?: CallOptions): Promise<AccountAnswer['data']>
  }
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
  const { get, list, update } = createRequests(connection)
  return {
    account: {
      get: options => get<AccountAnswer>('/v1/account', options),
      update: (changes, options) => update<AccountAnswer>('/v1/account', changes, options),
    },
    history: (query, options) => list<HistoryPage>('/v1/history', query, options),
    audit: (query, options) => list<AuditPage>('/v1/audit', query, options),
    credits: options => get<Credits>('/v1/credits', options),
    limits: async options => (await get<Limits>('/v1/limits', options)).limits,
    stats: (query, options) => get<Stats>('/v1/stats', options, query),
  }
}
