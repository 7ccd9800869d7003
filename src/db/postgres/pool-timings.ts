import { SECOND } from '../../platform/clock.ts'

/** Timeouts of a PostgreSQL connection pool, ms. */
export type PoolTimings = {
  /** Connection timeout. */
  readonly connectMs: number
  /** `statement_timeout`; migrations and copies are exempt. */
  readonly statementMs: number
  /** Wait beyond `statementMs` for a server that hangs or is unreachable. */
  readonly silenceMs: number
  /** A connection that is idle for this long is closed. */
  readonly idleMs: number
  /**
   * `idle_in_transaction_session_timeout`: such a transaction belongs to a suspended process and
   * locks rows that others wait for.
   */
  readonly idleInTransactionMs: number
  /** Wait after the server refused a connection; doubled with each further refusal. */
  readonly refusedMs: number
  /** Longest wait after a refusal, and so the longest delay after the server recovers. */
  readonly refusedMaxMs: number
}

export const DEFAULT_POOL_TIMINGS: PoolTimings = {
  connectMs: 5 * SECOND,
  statementMs: 10 * SECOND,
  silenceMs: 2 * SECOND,
  idleMs: 30 * SECOND,
  idleInTransactionMs: 10 * SECOND,
  refusedMs: 100,
  refusedMaxMs: 2 * SECOND,
}
