import type { Clock } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { type Address, isFault, parseAddress } from '../address/address.ts'
import type { AddressClassifier, AddressFlags } from '../address/classifier.ts'
import { suggestDomain, suggestForSyntaxError } from '../address/suggestion.ts'
import type { MxOperatorReader } from '../dns/operator-table.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { Resolver } from '../dns/resolver.ts'
import { addressesOf, findRoute, type Route } from '../dns/route.ts'
import type { ListLoader } from '../lists.ts'
import {
  type Acceptance,
  hostsOf,
  type ProbeTarget,
  type RouteWithHost,
} from '../probe/mx-groups.ts'
import type { CachedAnswer } from '../result-cache.ts'
import type { StepObserver } from '../step-observer.ts'
import { toEvidence, toResult } from '../verdict/result.ts'
import type { Evidence, Result } from '../verdict/verdict.ts'
import { type LikelyHosts, type MxHosts, mxHostsOf } from './mx-hosts.ts'

/** An address that only a mail server can say more of, with all that is known so far. */
export type ProbeTask = ProbeTarget & {
  readonly text: string
  readonly flags: AddressFlags
  readonly suggestion: string | null
  readonly typo: Evidence['typo']
  readonly operator: MxOperator
  /** Whom to ask, in this order; the first are those of `operator`. */
  readonly exchangers: MxHosts
  /** Null: the route was known before. */
  readonly dnsMs: number | null
  /** Monotonic time at which somebody began to wait for it. */
  readonly startedAt: number
  /** An answer that is no longer fresh: it stands in when asking again brings none. */
  readonly cached: CachedAnswer | null
}

/** Decided without a mail server, or to be asked. */
export type PreparedAddress = { readonly result: Result } | { readonly task: ProbeTask }

export type PrepareDeps = {
  readonly resolver: Resolver
  readonly clock: Clock
  readonly lists: ListLoader
  readonly likelyHosts: LikelyHosts
  /** False: no egress can dial IPv6 addresses. */
  readonly hasIpv6: boolean
  /** Look names of RFC 6761 up in the DNS as if they were ordinary ones. */
  readonly specialDomains: boolean
}

type PrepareOptions = {
  readonly checkSmtp: boolean
  readonly signal: AbortSignal
  readonly observer: StepObserver | null
  /** Somebody waits: the address of the likely exchanger is looked up together with the route. */
  readonly isUrgent: boolean
}

/** Everything that needs no mail server: syntax, flags, route. */
export async function prepare(
  deps: PrepareDeps,
  text: string,
  options: PrepareOptions,
): Promise<PreparedAddress> {
  const startedAt = deps.clock.monotonicNow()
  const address = parseAddress(text)
  const intended = isFault(address) ? suggestForSyntaxError(text) : null
  options.observer?.read(address, intended)
  if (isFault(address)) return decided(deps, text, startedAt, { address, suggestion: intended })
  const { classifier: reader, operators } = deps.lists
  const flags = reader.of(address)
  if (flags.blocked) return decided(deps, text, startedAt, { address, flags })
  if (address.domain.kind === 'literal') {
    return decided(deps, text, startedAt, { address, flags, skipped: 'literal' })
  }
  const route = await routeOf(deps, address, options)
  const dnsMs = Math.round(deps.clock.monotonicNow() - startedAt)
  const known = { text, address, flags, dnsMs, startedAt, ...suggest(address, route) }
  const operator = hasHost(route) ? mxHostsOf(route, operators, flags.free)[0].operator : null
  options.observer?.routed(address.domain, route, operator)
  const decidedBy = (facts: Partial<Evidence>) => {
    const { suggestion, typo } = known
    const timings = { dnsMs, connectMs: null }
    const evidence = { address, flags, suggestion, typo, route, operator, timings, ...facts }
    return decided(deps, text, startedAt, evidence)
  }
  if (!hasHost(route) || operator === null) return decidedBy({})
  const disposableHost = isDisposableHost(reader, address, route)
  const settled =
    flags.disposable || flags.spamTrap || disposableHost || isTrap(known.typo, operator)
  if (settled) return decidedBy({ disposableHost })
  if (!options.checkSmtp) return decidedBy({ skipped: 'unwanted' })
  return { task: toProbeTask(known, route, operators, null) }
}

/**
 * The inquiry of an item that was routed before, perhaps by another process. Null where the lists, which may have
 * been read again since, now decide without a mail server: then it is to be prepared anew.
 */
export function restoreTask(
  deps: PrepareDeps,
  text: string,
  route: RouteWithHost,
  accepted: Acceptance | null = null,
): ProbeTask | null {
  const address = parseAddress(text)
  if (isFault(address)) throw new EvError('internal', `A routed item is no address: ${text}`)
  const { classifier: reader, operators } = deps.lists
  const flags = reader.of(address)
  const settled = flags.blocked || flags.disposable || flags.spamTrap
  if (settled || isDisposableHost(reader, address, route)) return null
  const startedAt = deps.clock.monotonicNow()
  const known = { text, address, flags, dnsMs: null, startedAt, ...suggest(address, route) }
  const task = toProbeTask(known, route, operators, accepted)
  return isTrap(task.typo, task.operator) ? null : task
}

function decided(
  deps: PrepareDeps,
  text: string,
  startedAt: number,
  facts: Partial<Evidence> & Pick<Evidence, 'address'>,
): PreparedAddress {
  return { result: toResult(deps.clock, text, startedAt, toEvidence(facts)) }
}

async function routeOf(
  deps: PrepareDeps,
  { domain }: Address,
  { checkSmtp, isUrgent, signal }: PrepareOptions,
): Promise<Route> {
  // RFC 6761 §6: no public DNS answers for these names, so there is nothing to ask.
  if (domain.kind === 'special' && !deps.specialDomains) return { kind: 'no-domain' }
  const { resolver, likelyHosts, hasIpv6 } = deps
  const likely = checkSmtp && isUrgent ? likelyHosts.get(domain.ascii) : null
  // Whoever dials that host asks again and is told of a fault then.
  if (likely !== null) addressesOf(resolver, likely, signal, hasIpv6).catch(() => {})
  const route = await findRoute(resolver, domain.ascii, signal)
  likelyHosts.learn(domain.ascii, route)
  return route
}

/**
 * A guess is dropped when the domain has a mail server, for then it is most likely meant as it
 * stands, unless a large provider was meant.
 */
function suggest(address: Address, route: Route): Pick<Evidence, 'suggestion' | 'typo'> {
  const intended = suggestDomain(address.domain)
  const isRefuted = route.kind === 'mx' && !intended?.large
  if (intended === null || (!intended.sure && (isRefuted || route.kind === 'unknown'))) {
    return { suggestion: null, typo: null }
  }
  const suggestion = `${address.local}@${intended.domain}`
  if (!intended.large) return { suggestion, typo: null }
  return { suggestion, typo: intended.sure || route.kind !== 'mx' ? 'certain' : 'likely' }
}

/** Squatters give their mail to such operators. No mailbox is there to ask about. */
const isTrap = (typo: Evidence['typo'], { truth }: MxOperator) =>
  typo !== null && truth === 'parked'

/** An inquiry, with whom to ask and what is known of the domain there. */
function toProbeTask(
  { text, address, flags, dnsMs, startedAt, suggestion, typo }: PreviousEvidence,
  route: RouteWithHost,
  operators: MxOperatorReader,
  accepted: Acceptance | null,
): ProbeTask {
  const exchangers = mxHostsOf(route, operators, flags.free)
  const [{ operator, catchAll }] = exchangers
  const asked = { text, address, flags, route, operator, catchAll, exchangers }
  return { ...asked, suggestion, typo, dnsMs, startedAt, cached: null, accepted }
}

type PreviousEvidence = Pick<
  ProbeTask,
  'text' | 'address' | 'flags' | 'dnsMs' | 'startedAt' | 'suggestion' | 'typo'
>

const isDisposableHost = (reader: AddressClassifier, { domain }: Address, route: RouteWithHost) =>
  hostsOf(route).some(host => reader.disposableHost(host, domain.ascii))

export const hasHost = (route: Route): route is RouteWithHost =>
  route.kind === 'mx' || route.kind === 'implicit'
