import { type Clock, SECOND } from '../../platform/clock.ts'
import { isFault } from '../address/address.ts'
import { withDeadline } from '../deadline.ts'
import type { Resolver } from '../dns/resolver.ts'
import type { Result, Signal, SignalName } from '../verdict/verdict.ts'
import type { Gravatar } from './gravatar.ts'
import { findPolicySignals } from './mail-policies.ts'
import { findParkingSignals } from './parking.ts'
import { applySignals, isOpen } from './signal.ts'
import { findNetworkSignals } from './typo-network.ts'

type OutsideSignalsDeps = {
  readonly names: ReadonlySet<SignalName>
  readonly resolver: Resolver
  readonly clock: Clock
  /** Whether an operator is in the table or configured: its exchangers serve many customers. */
  readonly isKnownOperator: (name: string) => boolean
  /** Null if profiles are not asked for. */
  readonly gravatar: Gravatar | null
}

/** Time for all signals of one address. A later answer is no signal. */
export const SIGNALS_LIMIT_MS = 2 * SECOND

/** Adds signals from outside the SMTP session to results that it left open. */
export class OutsideSignals {
  readonly #deps: OutsideSignalsDeps

  constructor(deps: OutsideSignalsDeps) {
    this.#deps = deps
  }

  /** Whether signals can change this result. */
  isFor({ verdict, evidence }: Result): boolean {
    return isOpen(verdict) && !isFault(evidence.address)
  }

  /** Returns the result with its signals, within the limit. Never rejects. */
  async addTo(
    result: Result,
    { limitMs, aborts }: { readonly limitMs: number; readonly aborts: readonly AbortSignal[] },
  ): Promise<Result> {
    const limit = withDeadline(this.#deps.clock, Math.min(limitMs, SIGNALS_LIMIT_MS), aborts)
    try {
      const found = await Promise.all(
        this.#lookups(result, limit.signal).map(lookup =>
          lookup.catch(() => null).then(signals => signals ?? []),
        ),
      )
      return applySignals(result, found.flat())
    } finally {
      limit.done()
    }
  }

  /** Starts the lookups of one address. */
  #lookups({ evidence }: Result, signal: AbortSignal): Promise<readonly Signal[] | null>[] {
    const { names, resolver, gravatar, isKnownOperator } = this.#deps
    const { address, route, operator } = evidence
    if (isFault(address)) return []
    const domain = address.domain.ascii
    const lookups: Promise<readonly Signal[] | null>[] = []
    const hasMx = route?.kind === 'mx'
    if (hasMx || route?.kind === 'implicit') {
      if (names.has('policies'))
        lookups.push(findPolicySignals(resolver, domain, { hasMx, signal }))
    }
    if (hasMx) {
      const hosts = route.hosts.map(({ host }) => host)
      if (names.has('parking')) lookups.push(Promise.resolve(findParkingSignals(hosts, operator)))
      // Misspellings at a provider with many customers say nothing about the others.
      const isShared =
        operator !== null && operator.truth !== 'parked' && isKnownOperator(operator.name)
      if (names.has('typo-network') && !isShared) {
        lookups.push(findNetworkSignals(resolver, domain, { hosts, signal }))
      }
    }
    if (gravatar !== null) lookups.push(gravatar.findSignals(address, signal))
    return lookups
  }
}
