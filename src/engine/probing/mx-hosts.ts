import { type Clock, DAY } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { MxOperatorReader } from '../dns/operator-table.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { Route } from '../dns/route.ts'
import { type Acceptance, hostsOf, type RouteWithHost } from '../probe/mx-groups.ts'
import type { RecipientOutcome, Stage } from '../smtp/classify-reply.ts'
import type { Result } from '../verdict/verdict.ts'

/** The exchangers of a route that one operator runs, in the order of the route. */
export type HostAttempts = {
  readonly operator: MxOperator
  readonly route: RouteWithHost
  /** What is known of the domain there, before anybody is asked. */
  readonly catchAll: boolean | null
}

/**
 * Operators asked about one address. RFC 5321 §5.1 wants at least two addresses tried; Postfix opens
 * two sessions for a delivery (smtp_mx_session_limit).
 */
const OPERATORS_MAX = 2
/** Hosts of the first and of the second operator: three in all, as where there is one operator. */
const HOSTS_MAX = [2, 1] as const

/**
 * The exchangers of a route by operator, the operator of the first host first; never empty. A list has
 * few routes, so each is sorted once. `isFree`: mailboxes of the domain are for everybody.
 */
export function mxHostsOf(
  route: RouteWithHost,
  operators: MxOperatorReader,
  isFree: boolean,
): MxHosts {
  const known = KNOWN.get(route)
  // The operators are others when the lists are read again.
  if (known?.operators === operators && known.isFree === isFree) return known.all
  const [first, ...others] = sortedBy(operators, route).map(set => ({
    ...set,
    catchAll: knownCatchAll(operators, set.operator, isFree),
  }))
  if (first === undefined) throw new EvError('internal', 'A route without hosts.')
  const all: MxHosts = [first, ...others]
  KNOWN.set(route, { operators, isFree, all })
  return all
}

export type MxHosts = readonly [HostAttempts, ...HostAttempts[]]

const KNOWN = new WeakMap<
  RouteWithHost,
  { readonly operators: MxOperatorReader; readonly isFree: boolean; readonly all: MxHosts }
>()

/**
 * Some operators need not be asked: those that take every recipient at RCPT, and free providers that are
 * one tenant and tell the truth.
 */
function knownCatchAll(
  operators: MxOperatorReader,
  { name, truth }: MxOperator,
  isFree: boolean,
): boolean | null {
  if (truth === 'accepts-all' || truth === 'parked') return true
  return truth === 'tells' && isFree && operators.isKnown(name) ? false : null
}

function sortedBy(
  { of }: MxOperatorReader,
  route: RouteWithHost,
): Omit<HostAttempts, 'catchAll'>[] {
  if (route.kind === 'implicit') return [{ operator: of(route.host), route }]
  const byOperator = new Map<string, { operator: MxOperator; hosts: typeof route.hosts }>()
  for (const record of route.hosts) {
    const operator = of(record.host)
    const hosts = byOperator.get(operator.name)?.hosts ?? []
    byOperator.set(operator.name, { operator, hosts: [...hosts, record] })
  }
  const all = [...byOperator.values()].slice(0, OPERATORS_MAX)
  // The same route for the same hosts: whoever groups by route need not compare names.
  if (byOperator.size === 1) return all.map(({ operator }) => ({ operator, route }))
  return all.map(({ operator, hosts }, n) => ({
    operator,
    route: { kind: 'mx', hosts: hosts.slice(0, HOSTS_MAX[n]) },
  }))
}

/** The exchangers to ask: the catch-all test of an accepted recipient is made where it was accepted. */
export function mxHostsFor(exchangers: MxHosts, accepted: Acceptance | null): MxHosts {
  if (accepted === null) return exchangers
  const host = accepted.host ?? ''
  const there = exchangers.find(({ route }) => hostsOf(route).includes(host))
  return [there ?? exchangers[0]]
}

/**
 * Whether a recipient was accepted by a backup alone that takes every name: the first exchangers, when
 * they can be asked again, know better.
 */
export function isBackupOnly(exchangers: readonly HostAttempts[], { evidence }: Result): boolean {
  const { answer, catchAll, host } = evidence
  if (answer?.kind !== 'accepted' || catchAll !== true || host === null) return false
  const [first] = exchangers
  return first !== undefined && exchangers.length > 1 && !hostsOf(first.route).includes(host)
}

/**
 * Whether the next exchangers are to be asked: nobody spoke with us at these. It is what mail servers do
 * (RFC 5321 §5.1 for a host that is not reached; Postfix also for a 4xx and, with smtp_skip_5xx_greeting,
 * its default, for a 5xx greeting). What is said to MAIL and RCPT holds, a refusal of us too.
 */
export const triesNext = ({ stage }: RecipientOutcome) => BEFORE_MAIL.has(stage)

const BEFORE_MAIL: ReadonlySet<Stage> = new Set(['connect', 'greeting', 'ehlo', 'starttls'])

/** About 200 bytes each. */
const DOMAINS_MAX = 20_000
/** A wrong guess costs one question, so a guess may be old. */
const RETENTION_MS = DAY

/** Providers with one best exchanger, as their public MX records name it. */
const PROVIDERS: Readonly<Record<string, string>> = {
  'gmail.com': 'gmail-smtp-in.l.google.com',
  'googlemail.com': 'gmail-smtp-in.l.google.com',
  'outlook.com': 'outlook-com.olc.protection.outlook.com',
  'hotmail.com': 'hotmail-com.olc.protection.outlook.com',
  'live.com': 'live-com.olc.protection.outlook.com',
  'msn.com': 'msn-com.olc.protection.outlook.com',
}

/**
 * The exchanger that a domain most likely has, so that its address is asked for together with the MX
 * records: one round trip less. The MX answer alone decides who is dialled.
 */
export class LikelyHosts {
  readonly #known: TtlMap<{ readonly host: string }>

  constructor(clock: Clock) {
    this.#known = new TtlMap({ sizeMax: DOMAINS_MAX, clock })
  }

  get(domain: string): string | null {
    const provider = Object.hasOwn(PROVIDERS, domain) ? PROVIDERS[domain] : undefined
    return this.#known.get(domain)?.host ?? provider ?? null
  }

  /** Remembers the first host of a route, unless others of equal preference may be dialled instead. */
  learn(domain: string, route: Route): void {
    if (route.kind !== 'mx') return
    const [first, second] = route.hosts
    if (first === undefined || first.preference === second?.preference) return
    // A list learns the same again and again.
    if (this.#known.get(domain)?.host === first.host) return
    this.#known.set(domain, { host: first.host }, RETENTION_MS)
  }
}
