import pg from 'pg'
import type { Clock } from '../../platform/clock.ts'
import { DEFAULT_POOL_TIMINGS, type PoolTimings } from './pool-timings.ts'

/**
 * Whether the server itself refused a connection: too many connections (SQLSTATE 53300), starting
 * up or shutting down (57P03), or authentication failed. Attempts cost an unreachable server
 * nothing.
 */
export const isRefusal = (error: unknown): error is Error => error instanceof pg.DatabaseError

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
