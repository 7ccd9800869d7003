import { SECOND } from '../../platform/clock.ts'

/** How long a pool of connections to PostgreSQL waits, in ms. */
export type PoolTimings = {
  /** A server that does not accept a connection within this time counts as away. */
  readonly connectMs: number
  /** The server ends a statement after this; only those that make or move tables take longer. */
  readonly statementMs: number
  /** Beyond `statementMs`: a server that is frozen, or gone without a word, ends nothing itself. */
  readonly silenceMs: number
  /** A connection that was not used for so long is closed. */
  readonly idleMs: number
  /**
   * The server ends a transaction that stands still for so long: it belongs to a process that was
   * stopped, and holds rows that others wait for.
   */
  readonly idleInTransactionMs: number
  /** Wait after a server refused a connection; doubled with each further refusal. */
  readonly refusedMs: number
  /** The longest of these waits: within it ev notices that the server takes connections again. */
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
