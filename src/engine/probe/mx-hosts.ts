import { type Clock, DAY } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { MxOperatorReader } from '../dns/operator-table.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { Route } from '../dns/route.ts'
import type { RecipientOutcome, Stage } from '../smtp/classify-reply.ts'
import type { Result } from '../verdict/verdict.ts'
import {
  type Acceptance,
  hostsOf,
  type MxHosts,
  type OperatorHosts,
  type RouteWithHost,
} from './mx-groups.ts'

/**
 * Operators probed for one address, without those whose hosts have no address. RFC 5321 §5.1 asks
 * for at least two addresses to be tried; Postfix opens two sessions for a delivery
 * (smtp_mx_session_limit).
 */
export const OPERATORS_MAX = 2

/**
 * Groups the MX hosts of a route by operator, the operator of the first host first; never empty.
 * The result is cached per route, because a list has few routes. `isFree`: a freemail domain.
 */
export function groupHostsByOperator(
  route: RouteWithHost,
  operators: MxOperatorReader,
  isFree: boolean,
): MxHosts {
  const known = CACHE.get(route)
  // Reloading the lists replaces the operators.
  if (known?.operators === operators && known.isFree === isFree) return known.all
  const [first, ...others] = groupByOperator(operators, route).map(
    ({ operator, route }): OperatorHosts => ({
      operator,
      route,
      catchAll: knownCatchAll(operators, operator, isFree),
    }),
  )
  if (first === undefined) throw new EvError('internal', 'A route without hosts.')
  const all: MxHosts = [first, ...others]
  CACHE.set(route, { operators, isFree, all })
  return all
}

const CACHE = new WeakMap<
  RouteWithHost,
  { readonly operators: MxOperatorReader; readonly isFree: boolean; readonly all: MxHosts }
>()

/**
 * Returns the catch-all status that needs no test: of operators that accept every recipient at
 * RCPT, and of freemail providers, which have one tenant and answer truthfully.
 */
function knownCatchAll(
  operators: MxOperatorReader,
  { name, truth }: MxOperator,
  isFree: boolean,
): boolean | null {
  if (truth === 'accepts-all' || truth === 'parked') return true
  return truth === 'tells' && isFree && operators.isKnown(name) ? false : null
}

function groupByOperator(
  { of }: MxOperatorReader,
  route: RouteWithHost,
): Omit<OperatorHosts, 'catchAll'>[] {
  if (route.kind === 'implicit') return [{ operator: of(route.host), route }]
  const [only, ...others] = route.hosts
  if (only !== undefined && others.length === 0) return [{ operator: of(only.host), route }]
  const byOperator = new Map<string, { operator: MxOperator; hosts: typeof route.hosts }>()
  for (const record of route.hosts) {
    const operator = of(record.host)
    const hosts = byOperator.get(operator.name)?.hosts ?? []
    byOperator.set(operator.name, { operator, hosts: [...hosts, record] })
  }
  const all = [...byOperator.values()]
  // Return the same route object for the same hosts, so that grouping by route compares no names.
  if (all.length === 1) return all.map(({ operator }) => ({ operator, route }))
  return all.map(({ operator, hosts }) => ({ operator, route: { kind: 'mx', hosts } }))
}

/**
 * Selects the hosts to probe: a catch-all test runs at the operator that accepted the recipient.
 */
export function selectHosts(exchangers: MxHosts, accepted: Acceptance | null): MxHosts {
  if (accepted === null) return exchangers
  const host = accepted.host ?? ''
  const accepting = exchangers.find(({ route }) => hostsOf(route).includes(host))
  return [accepting ?? exchangers[0]]
}

/**
 * Whether only a backup MX that accepts every local part accepted the recipient. The primary hosts
 * are more reliable once they are reachable again.
 */
export function isBackupOnly(exchangers: readonly OperatorHosts[], { evidence }: Result): boolean {
  const { answer, catchAll, host } = evidence
  if (answer?.kind !== 'accepted' || catchAll !== true || host === null) return false
  const [first] = exchangers
  return first !== undefined && exchangers.length > 1 && !hostsOf(first.route).includes(host)
}

/**
 * Whether to try the next operator's hosts, because no session could be opened at these. Mail
 * servers do the same (RFC 5321 §5.1 for an unreachable host; Postfix also for a 4xx and, with its
 * default smtp_skip_5xx_greeting, for a 5xx greeting). Replies to MAIL and RCPT are final, blocks
 * included.
 */
export const shouldTryNextHosts = ({ stage }: RecipientOutcome) => BEFORE_MAIL.has(stage)

/**
 * Whether a host says that it does not serve the domain. While another host of the domain cannot be
 * reached, which may serve it, this decides nothing.
 */
export const isNotHosted = ({ kind, why }: RecipientOutcome) =>
  kind === 'rejected' && why === 'not-hosted'

const BEFORE_MAIL: ReadonlySet<Stage> = new Set(['connect', 'greeting', 'ehlo', 'starttls'])

/** An entry takes about 270 bytes, in total 5 MB. */
const DOMAINS_MAX = 20_000
/** A wrong guess costs only one DNS query, so an entry may be old. */
const RETENTION_MS = DAY

/** Providers with a single preferred MX host, from their public MX records. */
const PROVIDERS: Readonly<Record<string, string>> = {
  'gmail.com': 'gmail-smtp-in.l.google.com',
  'googlemail.com': 'gmail-smtp-in.l.google.com',
  'outlook.com': 'outlook-com.olc.protection.outlook.com',
  'hotmail.com': 'hotmail-com.olc.protection.outlook.com',
  'live.com': 'live-com.olc.protection.outlook.com',
  'msn.com': 'msn-com.olc.protection.outlook.com',
}

/**
 * Predicts the MX host of a domain, so that its address is looked up in parallel with the MX
 * records, which saves one round trip. Only the MX answer decides which host is dialed.
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

  /** Stores the first host of a route, unless others of equal preference may be dialed instead. */
  remember(domain: string, route: Route): void {
    if (route.kind !== 'mx') return
    const [first, second] = route.hosts
    if (first === undefined || first.preference === second?.preference) return
    // A list has the same domains many times, so an unchanged entry is not rewritten.
    if (this.#known.get(domain)?.host === first.host) return
    this.#known.set(domain, { host: first.host }, RETENTION_MS)
  }
}
