import { type Clock, MINUTE, SECOND } from '../platform/clock.ts'
import type { ResolverCheck } from './dns/resolver-check.ts'
import type { PreparedAddress } from './probing/prepare.ts'

/**
 * How long a list waits for the DNS check to pass, from the first row that waits: enough to restart
 * a resolver, leave a VPN or log in to a captive portal. Then its rows end as `dns_error`.
 */
export const DNS_RETRY_BUDGET_MS = 10 * MINUTE

/** Holds back the rows of one list while the answers of the DNS server are not believed. */
export class DnsPause {
  readonly #check: ResolverCheck | null
  readonly #clock: Clock
  readonly #signal: AbortSignal
  #startedAt: number | null = null
  #waiting: Promise<boolean> | null = null

  /** `check` is null where the resolver is not checked; an abort of `signal` ends all waits. */
  constructor(check: ResolverCheck | null, clock: Clock, signal: AbortSignal) {
    this.#check = check
    this.#clock = clock
    this.#signal = signal
  }

  /** Waits until the check passes; false after the patience or an abort of the signal. */
  wait(): Promise<boolean> {
    this.#waiting ??= this.#wait().finally(() => {
      this.#waiting = null
    })
    return this.#waiting
  }

  async #wait(): Promise<boolean> {
    if (this.#check === null) return false
    this.#startedAt ??= this.#clock.monotonicNow()
    while (
      !this.#signal.aborted &&
      this.#clock.monotonicNow() - this.#startedAt < DNS_RETRY_BUDGET_MS
    ) {
      if ((await this.#check.nextResult(this.#signal)) !== null) continue
      this.#startedAt = null
      return !this.#signal.aborted
    }
    return false
  }
}

/** A check that is due is made with the next question, and takes a moment. */
const WAIT_MIN_MS = SECOND

/** How long rows wait for the next check, in ms; null while the answers are believed. */
export const dnsWaitMs = (check: ResolverCheck | null): number | null =>
  check === null || check.failure === null ? null : Math.max(WAIT_MIN_MS, check.dueInMs)

/** Whether the address has a result only because an answer of the DNS server was not believed. */
export const isUntrusted = (prepared: PreparedAddress) =>
  'result' in prepared &&
  prepared.result.evidence.route?.kind === 'unknown' &&
  prepared.result.evidence.route.detail !== undefined
