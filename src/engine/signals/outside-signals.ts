import { type Clock, SECOND } from '../../platform/clock.ts'
import { isFault } from '../address/address.ts'
import { withDeadline } from '../deadline.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { Resolver } from '../dns/resolver.ts'
import type { Result, Signal, SignalName } from '../verdict/verdict.ts'
import type { Gravatar } from './gravatar.ts'
import { findPolicySignals } from './mail-policies.ts'
import { applySignals, isOpen, SIGNAL_SHIFTS } from './signal.ts'

type OutsideSignalsDeps = {
  readonly names: ReadonlySet<SignalName>
  readonly resolver: Resolver
  readonly clock: Clock
  /** Whether an operator is in the table or configured: its exchangers serve many customers. */
  readonly isKnownOperator: (name: string) => boolean
  /** Null if profiles are not asked for. */
  readonly gravatar: Gravatar | null
}

/** Time for all signals of one address. A later answer is not a signal. */
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

/**
 * Exchangers that are not mail servers of the domain, with the reason. Services with hosts of their
 * own are in the table of operators, as `parked`.
 */
const SINK_HOSTS: Readonly<Record<string, string>> = {
  // L. Atkins, "Identifying domains that don't accept or send email", Word to the Wise, 2019.
  localhost: 'names the sender itself, as many domains for sale do',
  'localhost.localdomain': 'names the sender itself, as many domains for sale do',
  // RFC 6761 §6.4: never a host.
  invalid: 'is a reserved name without a host',
  // RFC 2606 §3: reserved for documentation; found in templates of DNS providers.
  'example.com': 'is a reserved name of documentation',
  'example.net': 'is a reserved name of documentation',
  'example.org': 'is a reserved name of documentation',
}

/** Whether the mail of a domain goes to a parking service, a trap or a host that is none. */
export function findParkingSignals(
  hosts: readonly string[],
  operator: MxOperator | null,
): Signal[] {
  const found = (detail: string): Signal[] => [
    { name: 'parking', shift: SIGNAL_SHIFTS.parking, detail },
  ]
  if (operator?.truth === 'parked') {
    return found(`The mail exchanger belongs to a service for parked domains: ${operator.title}.`)
  }
  const reasons = hosts.map(sinkReason)
  const [reason] = reasons
  return reason !== undefined && reason !== null && !reasons.includes(null)
    ? found(`The mail exchanger ${hosts[0]} ${reason}.`)
    : []
}

function sinkReason(host: string): string | null {
  const suffix = Object.keys(SINK_HOSTS).find(one => host === one || host.endsWith(`.${one}`))
  return suffix === undefined ? null : (SINK_HOSTS[suffix] ?? null)
}

/** Common misspellings of large providers; `listedTypo` recognizes each. */
export const TYPO_DOMAINS = [
  ...['gmial.com', 'gmai.com', 'gmal.com', 'gnail.com', 'gmaill.com', 'gamil.com'],
  ...['hotmial.com', 'hotmai.com', 'hotmal.com', 'hotnail.com', 'hotmaill.com'],
  ...['yaho.com', 'yahooo.com', 'yhoo.com', 'yaoo.com'],
  ...['outlok.com', 'outloo.com', 'outllook.com', 'iclod.com', 'icloudd.com'],
] as const

/** One shared exchanger may be a coincidence, as with a defensive registration. */
export const NETWORK_MIN = 2

/**
 * Whether misspellings of large providers use the same mail exchanger: then their owner collects
 * mail. Misspellings whose lookup fails are not counted.
 */
export async function findNetworkSignals(
  resolver: Resolver,
  domain: string,
  { hosts, signal }: { readonly hosts: readonly string[]; readonly signal: AbortSignal },
): Promise<Signal[]> {
  const own = new Set(hosts)
  const shares = await Promise.all(
    TYPO_DOMAINS.filter(name => name !== domain).map(async name => {
      const answer = await resolver.resolve(name, 'MX', signal)
      const isShared = 'records' in answer && answer.records.some(({ host }) => own.has(host))
      return isShared ? [name] : []
    }),
  )
  const shared = shares.flat()
  if (shared.length < NETWORK_MIN) return []
  const detail = `The mail exchanger also serves misspelled domains: ${shared.join(', ')}.`
  return [{ name: 'typo-network', shift: SIGNAL_SHIFTS.typoNetwork, detail }]
}
