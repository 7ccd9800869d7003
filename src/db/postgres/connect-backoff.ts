import { type Clock, SECOND } from '../../platform/clock.ts'

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

/**
 * Whether the server itself refused a connection: too many connections (SQLSTATE 53300), starting
 * up or shutting down (57P03), or authentication failed. Attempts cost an unreachable server
 * nothing. Only errors that a server sends have a severity (PostgreSQL manual, 54.8).
 */
export const isRefusal = (error: unknown): error is Error =>
  error instanceof Error && 'severity' in error

/**
 * Backoff for connection attempts of several pools to a server that refuses them: for each attempt
 * the server forks a process. After a refusal no connection is opened for a while, then one attempt
 * at a time until one succeeds.
 */
export class ConnectBackoff {
  readonly #clock: Clock
  readonly #timings: Pick<PoolTimings, 'refusedMs' | 'refusedMaxMs'>
  #refusal: Error | null = null
  #waitMs = 0
  #nextAt = 0
  #isTrying = false

  constructor(
    clock: Clock,
    timings: Pick<PoolTimings, 'refusedMs' | 'refusedMaxMs'> = DEFAULT_POOL_TIMINGS,
  ) {
    this.#clock = clock
    this.#timings = timings
  }

  /** The last refusal while no connection may be opened; null if one may be. */
  get refusal(): Error | null {
    const mayTry = !this.#isTrying && this.#clock.monotonicNow() >= this.#nextAt
    return mayTry ? null : this.#refusal
  }

  /** Registers an attempt; call the returned function with its error or null. */
  begin(): (error: unknown) => void {
    const isTrial = this.#refusal !== null
    const wasRefused = this.#refusal
    this.#isTrying = isTrial
    return error => {
      if (isTrial) this.#isTrying = false
      if (!isRefusal(error)) this.#refusal = null
      // Attempts that started together count once.
      else if (this.#refusal === wasRefused) this.#postpone(error)
    }
  }

  #postpone(refusal: Error): void {
    const { refusedMs, refusedMaxMs } = this.#timings
    this.#waitMs = this.#refusal === null ? refusedMs : Math.min(this.#waitMs * 2, refusedMaxMs)
    this.#refusal = refusal
    this.#nextAt = this.#clock.monotonicNow() + this.#waitMs
  }
}
