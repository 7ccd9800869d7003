import { type Clock, MINUTE, SECOND } from '../platform/clock.ts'
import type { ResolverCheck } from './dns/resolver-check.ts'
import type { PreparedAddress } from './probe/prepare.ts'

/**
 * How long a list waits for the DNS check to pass, counted from the first row that waits: enough to
 * restart a resolver, leave a VPN or log in to a captive portal. After that its rows end as
 * `dns_error`.
 */
export const DNS_RETRY_BUDGET_MS = 10 * MINUTE

/** Holds back the rows of one list while the answers of the DNS server are not trusted. */
export class DnsPause {
  readonly #check: ResolverCheck | null
  readonly #clock: Clock
  readonly #signal: AbortSignal
  #startedAt: number | null = null
  #waiting: Promise<boolean> | null = null

  /** `check` is null if the resolver is not checked; an abort of `signal` ends all waits. */
  constructor(check: ResolverCheck | null, clock: Clock, signal: AbortSignal) {
    this.#check = check
    this.#clock = clock
    this.#signal = signal
  }

  /** Resolves with true when the check passes; with false after the retry budget or an abort. */
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

/** A check that is due runs with the next query, which takes a moment. */
const WAIT_MIN_MS = SECOND

/**
 * Returns how long a row whose lookup failed waits for the next check, in ms; null if the check does
 * not fail, and it is known that only the domain has trouble.
 */
export function dnsWaitMs(check: ResolverCheck | null): number | null {
  if (check === null) return null
  if (check.failure === null) return check.isInDoubt ? WAIT_MIN_MS : null
  return Math.max(WAIT_MIN_MS, check.dueInMs)
}

/** Whether an address has a result only because the lookup failed or its answer was not trusted. */
export const hasNoRoute = (prepared: PreparedAddress) => unknownRouteOf(prepared) !== null

/** Whether an address has a result only because the DNS check fails. */
export const isUntrusted = (prepared: PreparedAddress) =>
  unknownRouteOf(prepared)?.detail !== undefined

/** Whether an address has a result only because the lookup of its domain failed. */
export const hasFailedLookup = (prepared: PreparedAddress) =>
  hasNoRoute(prepared) && !isUntrusted(prepared)

function unknownRouteOf(prepared: PreparedAddress) {
  const route = 'result' in prepared ? prepared.result.evidence.route : null
  return route?.kind === 'unknown' ? route : null
}
