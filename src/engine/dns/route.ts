import { groupBy } from '../../platform/es2024.ts'
import { type Random, shuffled } from '../../platform/random.ts'
import {
  type DnsAnswer,
  type DnsFailure,
  type DnsFault,
  isNegative,
  type MxRecord,
  plainName,
  type Resolver,
} from './resolver.ts'

/** Where mail for a domain goes (RFC 5321 §5.1, RFC 7505). */
export type Route =
  /**
   * Hosts by preference, then by name, so that equal sets have the same order. Connections choose
   * randomly among hosts of equal preference.
   */
  | { readonly kind: 'mx'; readonly hosts: readonly MxRecord[] }
  /** No MX, but the domain has an address and is its own exchanger. */
  | { readonly kind: 'implicit'; readonly host: string }
  /** The domain declares that it accepts no mail (RFC 7505). */
  | { readonly kind: 'null-mx' }
  /** The domain does not exist (NXDOMAIN). */
  | { readonly kind: 'no-domain' }
  /**
   * The domain exists without MX and address records, or without a valid host in its MX records.
   */
  | { readonly kind: 'no-mail' }
  /** The lookup failed. `detail` and `isOurs` are those of the `DnsFailure`. */
  | (Pick<DnsFailure, 'detail' | 'isOurs'> & {
      readonly kind: 'unknown'
      readonly fault: 'server' | 'timeout'
    })

/**
 * Looks up the mail route of `domain` (A-labels): one query, or three without MX records. DNS errors
 * and an abort return `unknown`.
 */
export async function findRoute(
  resolver: Resolver,
  domain: string,
  signal?: AbortSignal,
): Promise<Route> {
  const answer = await resolver.resolve(domain, 'MX', signal)
  if ('records' in answer) return cachedRoute(answer.records)
  if (!isNegative(answer)) return toUnknownRoute(answer)
  const lookup = await addressesOf(resolver, domain, { signal, isUrgent: true })
  return toRouteWithoutMx(domain, answer, lookup)
}

/** Returns the route of a domain without waiting, if the answers are cached; else null. */
export function cachedRouteOf(resolver: Resolver, domain: string): Route | null {
  const answer = resolver.cached?.(domain, 'MX')
  if (answer === undefined) return null
  if ('records' in answer) return cachedRoute(answer.records)
  const lookup = isNegative(answer) ? cachedAddressesOf(resolver, domain) : null
  const route = lookup === null ? null : toRouteWithoutMx(domain, answer, lookup)
  return route?.kind === 'unknown' ? null : route
}

/** Parses each cached answer once, because the addresses of a list share few domains. */
function cachedRoute(records: readonly MxRecord[]): Route {
  const known = ROUTES.get(records)
  if (known !== undefined) return known
  const route = routeFrom(records)
  ROUTES.set(records, route)
  return route
}

const ROUTES = new WeakMap<readonly MxRecord[], Route>()

/**
 * Returns the hosts by preference, random among equals (RFC 5321 §5.1), but those that are `isLast`
 * after their equals; empty without a host.
 */
export function connectOrder(
  route: Route,
  random: Random,
  isLast: (host: string) => boolean = () => false,
): string[] {
  if (route.kind === 'implicit') return [route.host]
  if (route.kind !== 'mx') return []
  if (route.hosts.length === 1) return route.hosts.map(({ host }) => host)
  const byPreference = groupBy(route.hosts, record => record.preference)
  return [...byPreference.entries()]
    .sort(([a], [b]) => a - b)
    .flatMap(([, equals]) => {
      const hosts = shuffled(equals, random).map(({ host }) => host)
      return [...hosts.filter(host => !isLast(host)), ...hosts.filter(isLast)]
    })
}

export type HostLookup = { readonly addresses: readonly string[] } | DnsFailure

/**
 * The families of addresses that can be dialed. If it is only one, the other is queried only for a
 * host without addresses of the one.
 */
export type AddressFamilies = 'ipv4' | 'ipv6' | 'both'

type AddressOptions = {
  readonly signal?: AbortSignal | undefined
  /** Default: both. */
  readonly families?: AddressFamilies
  /**
   * IPv4 addresses are returned without waiting for the answer to AAAA. `addressesOf` without it
   * completes the lookup.
   */
  readonly isUrgent?: boolean
}

/**
 * Returns the IP addresses of a host, IPv4 first: some servers accept mail from IPv4 only or are
 * stricter with IPv6 senders (Google requires PTR and SPF), and many machines have no IPv6 route.
 * Returns a fault if no address was found.
 */
export async function addressesOf(
  resolver: Resolver,
  host: string,
  { signal, families = 'both', isUrgent = false }: AddressOptions = {},
): Promise<HostLookup> {
  const isBoth = families === 'both'
  const [preferred, other] = typesFor(families)
  const queryOther = () => resolver.resolve(host, other, signal)
  const pending = resolver.resolve(host, preferred, signal)
  const pendingOther = isBoth ? queryOther() : null
  // Its failure is reported below, unless its answer is not needed.
  pendingOther?.catch(() => {})
  const answer = await pending
  if (recordsOf(answer).length > 0 && (isUrgent || !isBoth)) return toLookup(answer, NO_RECORDS)
  return toLookup(answer, await (pendingOther ?? queryOther()))
}

/** Returns the record types of addresses; those of the first are dialed first. */
const typesFor = (families: AddressFamilies): readonly ['A' | 'AAAA', 'A' | 'AAAA'] =>
  families === 'ipv6' ? ['AAAA', 'A'] : ['A', 'AAAA']

/** Returns what `addressesOf` would, without waiting, if all answers are cached; else null. */
export function cachedAddressesOf(
  resolver: Resolver,
  host: string,
  families: AddressFamilies = 'both',
): HostLookup | null {
  const [preferred, other] = typesFor(families)
  const first = resolver.cached?.(host, preferred)
  if (first === undefined) return null
  const needsOther = families === 'both' || recordsOf(first).length === 0
  const second = needsOther ? resolver.cached?.(host, other) : NO_RECORDS
  return second === undefined ? null : toLookup(first, second)
}

function toLookup(preferred: AddressAnswer, other: AddressAnswer): HostLookup {
  const [first, second] = [recordsOf(preferred), recordsOf(other)]
  if (first.length + second.length > 0) return { addresses: limitAddresses(first, second) }
  return moreUncertain(failureOf(preferred), failureOf(other))
}

/**
 * Limits the addresses of a host. Both families are kept (as by Postfix's
 * `smtp_balance_inet_protocols`), because one of them may have no route.
 */
function limitAddresses(first: readonly string[], second: readonly string[]): readonly string[] {
  if (first.length + second.length === 1) return first.length === 1 ? first : second
  const [preferred, others] = [[...new Set(first)], [...new Set(second)]]
  const kept = preferred.slice(0, ADDRESSES_MAX - Math.min(others.length, OTHER_FAMILY_MIN))
  return [...kept, ...others.slice(0, ADDRESSES_MAX - kept.length)]
}

/**
 * The limit of Postfix (`smtp_mx_address_limit`); without one, a host could amplify connections.
 */
const ADDRESSES_MAX = 5
/** Of these, the least for the family that is dialed last, if it has so many. */
const OTHER_FAMILY_MIN = 2
/** More than any legitimate domain has; the most preferred ones are kept. */
const HOSTS_MAX = 20

function routeFrom(records: readonly MxRecord[]): Route {
  const [first, ...others] = records
  // RFC 7505 §3: a single "." is a null MX; next to other records it is an error and is ignored.
  if (first && others.length === 0 && (first.host === '' || first.host === '.')) {
    return { kind: 'null-mx' }
  }
  const hosts = reachableHosts(records)
  // MX records without a valid host do not make the domain its own exchanger (RFC 5321 §5.1).
  return hosts.length === 0 ? { kind: 'no-mail' } : { kind: 'mx', hosts }
}

function reachableHosts(records: readonly MxRecord[]): MxRecord[] {
  const sorted = records
    .filter(record => isHostName(record.host))
    .map(({ preference, host }) => ({ preference, host: plainName(host) }))
    .sort((a, b) => a.preference - b.preference || (a.host < b.host ? -1 : 1))
  if (sorted.length < 2) return sorted
  const best = new Map<string, MxRecord>()
  for (const record of sorted) if (!best.has(record.host)) best.set(record.host, record)
  return [...best.values()].slice(0, HOSTS_MAX)
}

/**
 * Whether a text is a host name: RFC 1123 §2.1 with underscores, which real exchangers have. A
 * numeric last label makes it an IP address, which an MX must not be (RFC 5321 §5.1).
 */
const isHostName = (host: string) =>
  host.replace(/\.$/, '').length <= NAME_OCTETS_MAX &&
  /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?$/i.test(host) &&
  !/(^|\.)(\d+|0x[0-9a-f]*)\.?$/i.test(host)

/** RFC 1035 §2.3.4: 255 octets on the wire are 253 characters of text. */
const NAME_OCTETS_MAX = 253

/**
 * Returns the route of a domain without MX records. A domain with an address is its own exchanger
 * (RFC 5321 §5.1), also if the server denied the name when asked for MX: load balancers and the
 * resolvers of containers answer NXDOMAIN for every type that they do not know, where RFC 8020
 * allows it only for a name without any records. Mail servers look the address up too.
 */
function toRouteWithoutMx(domain: string, mx: DnsFailure, lookup: HostLookup): Route {
  if ('addresses' in lookup) return { kind: 'implicit', host: plainName(domain) }
  if (!isNegative(lookup)) return toUnknownRoute(lookup)
  return { kind: mx.fault === 'no-name' && lookup.fault === 'no-name' ? 'no-domain' : 'no-mail' }
}

const toUnknownRoute = ({ fault, detail, isOurs }: DnsFailure): Route => ({
  kind: 'unknown',
  fault: fault === 'timeout' ? 'timeout' : 'server',
  ...(detail === undefined ? {} : { detail }),
  ...(isOurs === undefined ? {} : { isOurs }),
})

type AddressAnswer = DnsAnswer<'A' | 'AAAA'>

const recordsOf = (answer: AddressAnswer) => ('records' in answer ? answer.records : [])
const failureOf = (answer: AddressAnswer): DnsFailure =>
  'fault' in answer ? answer : { fault: 'no-data' }

const NO_RECORDS: AddressAnswer = { records: [] }

/**
 * Returns the more uncertain of two faults, so that a partial answer never counts as complete. A
 * name with data of another type exists, whatever the answers to other types are.
 */
const moreUncertain = (one: DnsFailure, other: DnsFailure): DnsFailure =>
  BY_UNCERTAINTY.indexOf(one.fault) >= BY_UNCERTAINTY.indexOf(other.fault) ? one : other
const BY_UNCERTAINTY: readonly DnsFault[] = ['no-name', 'no-data', 'server', 'timeout']

/** Returns a clause that says why a domain has no usable route; null if it has one. */
export function noMailText(route: Route): string | null {
  switch (route.kind) {
    case 'no-domain':
      return 'the domain does not exist'
    case 'no-mail':
      return 'the domain has neither MX nor address records'
    case 'null-mx':
      return 'the domain publishes a null MX (RFC 7505)'
    case 'unknown':
      if (route.detail !== undefined) return route.detail
      return route.fault === 'timeout' ? 'the DNS servers did not answer' : 'the DNS servers failed'
    case 'mx':
    case 'implicit':
      return null
  }
}
