import type { Clock } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { type Address, isFault, parseAddress, type SyntaxFault } from '../address/address.ts'
import type { AddressClassifier, AddressFlags } from '../address/classifier.ts'
import { correctLocal, suggestDomain, suggestForSyntaxError } from '../address/suggestion.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { Resolver } from '../dns/resolver.ts'
import {
  type AddressFamilies,
  addressesOf,
  cachedRouteOf,
  findRoute,
  type Route,
} from '../dns/route.ts'
import type { ListLoader } from '../lists.ts'
import { type CachedAnswer, cacheKey } from '../result-cache.ts'
import type { StepObserver } from '../step-observer.ts'
import { toEvidence, toResult } from '../verdict/judge.ts'
import type { Evidence, Result } from '../verdict/verdict.ts'
import { hostsOf, type ProbeTarget, type RouteWithHost } from './mx-groups.ts'
import { groupHostsByOperator, type LikelyHosts } from './mx-hosts.ts'

/** An address that needs an SMTP probe, with the evidence so far. */
export type ProbeTask = ProbeTarget & {
  readonly text: string
  /** The key under which its answer is cached and its verification in flight is shared. */
  readonly cacheKey: string
  readonly flags: AddressFlags
  readonly suggestion: string | null
  readonly typo: Evidence['typo']
  readonly route: RouteWithHost
  /** The operator of the first MX hosts. */
  readonly operator: MxOperator
  /** Duration of the DNS lookup; null if the route was known before. */
  readonly dnsMs: number | null
  /** Monotonic time at which the verification started. */
  readonly startedAt: number
  /** An expired cached answer, used if the new probe brings no definite one. */
  readonly cached: CachedAnswer | null
}

/** A result that needs no SMTP probe, or the task for one. */
export type PreparedAddress = { readonly result: Result } | { readonly task: ProbeTask }

/** What a task gets from its caller. */
export type TaskOptions = Pick<ProbeTask, 'accepted'> & { readonly cacheScope: string | null }

export type PrepareDeps = {
  readonly resolver: Resolver
  readonly clock: Clock
  readonly lists: ListLoader
  readonly likelyHosts: LikelyHosts
  /** Returns the addresses that can be dialed now. */
  readonly getFamilies: () => AddressFamilies
  /** Whether special-use domains (RFC 6761) are looked up in the DNS like ordinary ones. */
  readonly specialDomains: boolean
}

/** An address whose route decides how it goes on. */
export type ExaminedAddress = {
  readonly text: string
  readonly startedAt: number
  readonly address: Address
  readonly flags: AddressFlags
}

/** How an examined address goes on. */
export type ConcludeOptions = {
  readonly checkSmtp: boolean
  readonly cacheScope: string | null
  readonly observer: StepObserver | null
}

/** Runs the checks that need neither DNS nor a mail server: syntax and flags. */
export function examine(
  deps: PrepareDeps,
  text: string,
  observer: StepObserver | null,
  parsed?: Address | SyntaxFault,
): { readonly result: Result } | ExaminedAddress {
  const startedAt = deps.clock.monotonicNow()
  const address = parsed ?? parseAddress(text)
  const suggested = isFault(address) ? suggestForSyntaxError(text) : null
  observer?.read(address, suggested)
  if (isFault(address)) return decided(deps, text, startedAt, { address, suggestion: suggested })
  const flags = deps.lists.classifier.of(address)
  if (flags.blocked) return decided(deps, text, startedAt, { address, flags })
  if (address.domain.kind === 'literal') {
    return decided(deps, text, startedAt, { address, flags, skipped: 'literal' })
  }
  return { text, startedAt, address, flags }
}

/** Returns the result or the probe task of an address with this route. */
export function conclude(
  deps: PrepareDeps,
  { text, startedAt, address, flags }: ExaminedAddress,
  route: Route,
  options: ConcludeOptions,
): PreparedAddress {
  const { classifier, operators } = deps.lists
  const dnsMs = Math.round(deps.clock.monotonicNow() - startedAt)
  const { suggestion, typo } = suggest(address, route)
  const exchangers = hasHost(route) ? groupHostsByOperator(route, operators, flags.free) : null
  const operator = exchangers?.[0].operator ?? null
  options.observer?.routed(address.domain, route, operator)
  const known = { text, address, flags, dnsMs, startedAt, suggestion, typo }
  if (!hasHost(route) || exchangers === null || operator === null)
    return decidedBy(deps, known, { route, operator })
  const disposableHost = isDisposableHost(classifier, address, route)
  const isDecided = flags.disposable || flags.spamTrap || disposableHost || isTrap(typo, operator)
  if (isDecided) return decidedBy(deps, known, { route, operator, disposableHost })
  if (!options.checkSmtp) return decidedBy(deps, known, { route, operator, skipped: 'unwanted' })
  return { task: toProbeTask(known, route, exchangers, options.cacheScope, null) }
}

/** Returns the result of an address whose evidence so far and these facts decide. */
function decidedBy(
  deps: PrepareDeps,
  { text, startedAt, dnsMs, ...known }: PreviousEvidence,
  facts: Partial<Evidence>,
): { readonly result: Result } {
  const timings = { dnsMs, connectMs: null }
  return decided(deps, text, startedAt, { ...known, timings, ...facts })
}

/**
 * Restores the task of an item that was routed earlier, perhaps by another process. Returns null if
 * the lists, which may have been reloaded since, now decide without a mail server.
 */
export function restoreTask(
  deps: PrepareDeps,
  text: string,
  route: RouteWithHost,
  options: TaskOptions,
): ProbeTask | null {
  const address = parseAddress(text)
  if (isFault(address)) throw new EvError('internal', `A routed item is no address: ${text}`)
  const { classifier, operators } = deps.lists
  const flags = classifier.of(address)
  const isDecided = flags.blocked || flags.disposable || flags.spamTrap
  if (isDecided || isDisposableHost(classifier, address, route)) return null
  const startedAt = deps.clock.monotonicNow()
  const known = { text, address, flags, dnsMs: null, startedAt, ...suggest(address, route) }
  const { cacheScope, accepted } = options
  const exchangers = groupHostsByOperator(route, operators, flags.free)
  const task = toProbeTask(known, route, exchangers, cacheScope, accepted)
  return isTrap(task.typo, task.operator) ? null : task
}

function decided(
  deps: PrepareDeps,
  text: string,
  startedAt: number,
  facts: Partial<Evidence> & Pick<Evidence, 'address'>,
): { readonly result: Result } {
  return { result: toResult(deps.clock, text, startedAt, toEvidence(facts)) }
}

/** Returns the route of an address without a DNS query; null if one is needed. */
export function cachedRouteFor(deps: PrepareDeps, { domain }: Address): Route | null {
  // RFC 6761 §6: public DNS does not resolve these names, so no query is sent.
  if (domain.kind === 'special' && !deps.specialDomains) return { kind: 'no-domain' }
  return cachedRouteOf(deps.resolver, domain.ascii)
}

/** Looks up the route of an address. */
export async function lookUpRoute(
  { resolver, likelyHosts, getFamilies }: PrepareDeps,
  { domain }: Address,
  options: {
    readonly checkSmtp: boolean
    readonly signal: AbortSignal
    /** A caller waits: the address of the likely MX host is looked up in parallel. */
    readonly isUrgent: boolean
  },
): Promise<Route> {
  const { checkSmtp, isUrgent, signal } = options
  const likely = checkSmtp && isUrgent ? likelyHosts.get(domain.ascii) : null
  // The later dial looks the host up again and reports the failure.
  const families = getFamilies()
  if (likely !== null) addressesOf(resolver, likely, { signal, families }).catch(() => {})
  const route = await findRoute(resolver, domain.ascii, signal)
  likelyHosts.remember(domain.ascii, route)
  return route
}

/**
 * Returns the intended address. Drops an uncertain suggestion if the domain has a mail server, because
 * it is then probably spelled as intended, unless squatters imitate the suggested provider.
 */
function suggest(address: Address, route: Route): Pick<Evidence, 'suggestion' | 'typo'> {
  const suggested = suggestDomain(address.domain)
  const corrected = correctLocal(address)
  const isRefuted = route.kind === 'mx' && !suggested?.isImitation
  if (suggested === null || (!suggested.sure && (isRefuted || route.kind === 'unknown'))) {
    return { suggestion: corrected?.text ?? null, typo: null }
  }
  const suggestion = `${(corrected ?? address).local}@${suggested.domain}`
  if (!suggested.isImitation) return { suggestion, typo: null }
  return { suggestion, typo: suggested.sure || route.kind !== 'mx' ? 'certain' : 'likely' }
}

/** Typo domains of squatters use parking operators, which have no mailbox to probe. */
const isTrap = (typo: Evidence['typo'], { truth }: MxOperator) =>
  typo !== null && truth === 'parked'

/** Creates a task with the MX hosts to probe and the known catch-all status of the domain. */
function toProbeTask(
  { text, address, flags, dnsMs, startedAt, suggestion, typo }: PreviousEvidence,
  route: RouteWithHost,
  exchangers: ProbeTask['exchangers'],
  cacheScope: string | null,
  accepted: ProbeTask['accepted'],
): ProbeTask {
  const [{ operator }] = exchangers
  return {
    text,
    cacheKey: cacheKey(cacheScope, address),
    address,
    flags,
    route,
    operator,
    exchangers,
    suggestion,
    typo,
    dnsMs,
    startedAt,
    cached: null,
    accepted,
  }
}

type PreviousEvidence = Pick<
  ProbeTask,
  'text' | 'address' | 'flags' | 'dnsMs' | 'startedAt' | 'suggestion' | 'typo'
>

const isDisposableHost = (
  classifier: AddressClassifier,
  { domain }: Address,
  route: RouteWithHost,
) => hostsOf(route).some(host => classifier.disposableHost(host, domain.ascii))

const hasHost = (route: Route): route is RouteWithHost =>
  route.kind === 'mx' || route.kind === 'implicit'
