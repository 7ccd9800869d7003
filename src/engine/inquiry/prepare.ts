import { type Address, isFault, parseAddress } from '../../address/address.ts'
import { suggestDomain, suggestForFault } from '../../address/suggestion.ts'
import type { TraitReader, Traits } from '../../address/traits.ts'
import type { Clock } from '../../base/clock.ts'
import { EvError } from '../../base/error.ts'
import type { Operator, OperatorReader } from '../../dns/operator.ts'
import type { Resolver } from '../../dns/resolver.ts'
import { addressesOf, findRoute, type Route } from '../../dns/route.ts'
import { type Acceptance, hostsOf, type Question, type RouteWithHost } from '../../probe/plan.ts'
import type { Evidence, Result } from '../../verdict/verdict.ts'
import type { Lists } from '../lists.ts'
import type { Remembered } from '../memory.ts'
import { evidenceOf, resultOf } from '../result/result.ts'
import type { Telling } from '../step/telling.ts'
import { type AllExchangers, exchangersOf } from './exchangers.ts'
import type { LikelyHosts } from './likely-hosts.ts'

/** An address that only a mail server can say more of, with all that is known so far. */
export type Inquiry = Question & {
  readonly text: string
  readonly traits: Traits
  readonly suggestion: string | null
  readonly typo: Evidence['typo']
  readonly operator: Operator
  /** Whom to ask, in this order; the first are those of `operator`. */
  readonly exchangers: AllExchangers
  /** Null: the route was known before. */
  readonly dnsMs: number | null
  /** Monotonic time at which somebody began to wait for it. */
  readonly begunAt: number
  /** An answer that is no longer fresh: it stands in when asking again brings none. */
  readonly remembered: Remembered | null
}

/** Decided without a mail server, or to be asked. */
export type Prepared = { readonly result: Result } | { readonly inquiry: Inquiry }

export type PrepareWorld = {
  readonly resolver: Resolver
  readonly clock: Clock
  readonly lists: Lists
  readonly likelyHosts: LikelyHosts
  /** False: no egress can dial IPv6 addresses. */
  readonly hasIpv6: boolean
  /** Look names of RFC 6761 up in the DNS as if they were ordinary ones. */
  readonly specialDomains: boolean
}

type PrepareOptions = {
  readonly checkSmtp: boolean
  readonly signal: AbortSignal
  readonly telling: Telling | null
  /** Somebody waits: the address of the likely exchanger is looked up together with the route. */
  readonly isUrgent: boolean
}

/** Everything that needs no mail server: syntax, traits, route. */
export async function prepare(
  world: PrepareWorld,
  text: string,
  options: PrepareOptions,
): Promise<Prepared> {
  const begunAt = world.clock.ticks()
  const address = parseAddress(text)
  const meant = isFault(address) ? suggestForFault(text) : null
  options.telling?.read(address, meant)
  if (isFault(address)) return decided(world, text, begunAt, { address, suggestion: meant })
  const { traits: reader, operators } = world.lists
  const traits = reader.of(address)
  if (traits.blocked) return decided(world, text, begunAt, { address, traits })
  if (address.domain.kind === 'literal') {
    return decided(world, text, begunAt, { address, traits, skipped: 'literal' })
  }
  const route = await routeOf(world, address, options)
  const dnsMs = Math.round(world.clock.ticks() - begunAt)
  const known = { text, address, traits, dnsMs, begunAt, ...suggest(address, route) }
  const operator = hasHost(route) ? exchangersOf(route, operators, traits.free)[0].operator : null
  options.telling?.routed(address.domain, route, operator)
  const decidedBy = (facts: Partial<Evidence>) => {
    const { suggestion, typo } = known
    const timings = { dnsMs, connectMs: null }
    const evidence = { address, traits, suggestion, typo, route, operator, timings, ...facts }
    return decided(world, text, begunAt, evidence)
  }
  if (!hasHost(route) || operator === null) return decidedBy({})
  const disposableHost = isDisposableHost(reader, address, route)
  const settled =
    traits.disposable || traits.spamTrap || disposableHost || isTrap(known.typo, operator)
  if (settled) return decidedBy({ disposableHost })
  if (!options.checkSmtp) return decidedBy({ skipped: 'unwanted' })
  return { inquiry: inquiryOf(known, route, operators, null) }
}

/**
 * The inquiry of an item that was routed before, perhaps by another process. Null where the lists, which may have
 * been read again since, now decide without a mail server: then it is to be prepared anew.
 */
export function resumeInquiry(
  world: PrepareWorld,
  text: string,
  route: RouteWithHost,
  accepted: Acceptance | null = null,
): Inquiry | null {
  const address = parseAddress(text)
  if (isFault(address)) throw new EvError('internal', `A routed item is no address: ${text}`)
  const { traits: reader, operators } = world.lists
  const traits = reader.of(address)
  const settled = traits.blocked || traits.disposable || traits.spamTrap
  if (settled || isDisposableHost(reader, address, route)) return null
  const begunAt = world.clock.ticks()
  const known = { text, address, traits, dnsMs: null, begunAt, ...suggest(address, route) }
  const inquiry = inquiryOf(known, route, operators, accepted)
  return isTrap(inquiry.typo, inquiry.operator) ? null : inquiry
}

function decided(
  world: PrepareWorld,
  text: string,
  begunAt: number,
  facts: Partial<Evidence> & Pick<Evidence, 'address'>,
): Prepared {
  return { result: resultOf(world.clock, text, begunAt, evidenceOf(facts)) }
}

async function routeOf(
  world: PrepareWorld,
  { domain }: Address,
  { checkSmtp, isUrgent, signal }: PrepareOptions,
): Promise<Route> {
  // RFC 6761 §6: no public DNS answers for these names, so there is nothing to ask.
  if (domain.kind === 'special' && !world.specialDomains) return { kind: 'no-domain' }
  const { resolver, likelyHosts, hasIpv6 } = world
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
  const meant = suggestDomain(address.domain)
  const isRefuted = route.kind === 'mx' && !meant?.large
  if (meant === null || (!meant.sure && (isRefuted || route.kind === 'unknown'))) {
    return { suggestion: null, typo: null }
  }
  const suggestion = `${address.local}@${meant.domain}`
  if (!meant.large) return { suggestion, typo: null }
  return { suggestion, typo: meant.sure || route.kind !== 'mx' ? 'certain' : 'likely' }
}

/** Squatters give their mail to such operators. No mailbox is there to ask about. */
const isTrap = (typo: Evidence['typo'], { truth }: Operator) => typo !== null && truth === 'parked'

/** An inquiry, with whom to ask and what is known of the domain there. */
function inquiryOf(
  { text, address, traits, dnsMs, begunAt, suggestion, typo }: KnownBefore,
  route: RouteWithHost,
  operators: OperatorReader,
  accepted: Acceptance | null,
): Inquiry {
  const exchangers = exchangersOf(route, operators, traits.free)
  const [{ operator, catchAll }] = exchangers
  const asked = { text, address, traits, route, operator, catchAll, exchangers }
  return { ...asked, suggestion, typo, dnsMs, begunAt, remembered: null, accepted }
}

type KnownBefore = Pick<
  Inquiry,
  'text' | 'address' | 'traits' | 'dnsMs' | 'begunAt' | 'suggestion' | 'typo'
>

const isDisposableHost = (reader: TraitReader, { domain }: Address, route: RouteWithHost) =>
  hostsOf(route).some(host => reader.disposableHost(host, domain.ascii))

export const hasHost = (route: Route): route is RouteWithHost =>
  route.kind === 'mx' || route.kind === 'implicit'
