import { type Random, shuffled } from '../../platform/random.ts'
import {
  type DnsAnswer,
  type DnsFailure,
  type DnsFault,
  type MxRecord,
  plainName,
  type Resolver,
} from './resolver.ts'

/** Where mail for a domain goes (RFC 5321 §5.1, RFC 7505). */
export type Route =
  /** Hosts by preference, then by name: a stable order, so that equal sets are equal. A host of equal preference is chosen by chance when dialling. */
  | { readonly kind: 'mx'; readonly hosts: readonly MxRecord[] }
  /** No MX, but the domain itself has an address: it is its own exchanger. */
  | { readonly kind: 'implicit'; readonly host: string }
  /** RFC 7505: the domain says that it takes no mail. */
  | { readonly kind: 'null-mx' }
  /** NXDOMAIN. */
  | { readonly kind: 'no-domain' }
  /** The domain exists and has neither MX nor address, or none of its MX records names a host. */
  | { readonly kind: 'no-mail' }
  /** DNS failed: nothing is known. `detail` says why an answer was not believed. */
  | { readonly kind: 'unknown'; readonly fault: 'server' | 'timeout'; readonly detail?: string }

/**
 * Finds where mail for `domain` (A-labels) goes, in one to three questions. Never throws for what DNS says; an abort
 * gives `unknown`.
 */
export async function findRoute(
  resolver: Resolver,
  domain: string,
  signal?: AbortSignal,
): Promise<Route> {
  const answer = await resolver.resolve(domain, 'MX', signal)
  if ('records' in answer) return cachedRoute(answer.records)
  if (answer.fault === 'no-name') return { kind: 'no-domain' }
  // RFC 5321 §5.1: the domain itself is the exchanger only where there is no MX at all.
  if (answer.fault === 'no-data') return implicitRoute(resolver, domain, signal)
  return { ...answer, kind: 'unknown', fault: answer.fault }
}

/** A remembered answer is read once: a list asks for the same route again and again. */
function cachedRoute(records: readonly MxRecord[]): Route {
  const known = ROUTES.get(records)
  if (known !== undefined) return known
  const route = routeFrom(records)
  ROUTES.set(records, route)
  return route
}

const ROUTES = new WeakMap<readonly MxRecord[], Route>()

/** The hosts to try, best first; equal preferences in an order of chance (RFC 5321 §5.1). Empty when there is no host. */
export function connectOrder(route: Route, random: Random): string[] {
  if (route.kind === 'implicit') return [route.host]
  if (route.kind !== 'mx') return []
  const byPreference = Map.groupBy(route.hosts, record => record.preference)
  return [...byPreference.entries()]
    .sort(([a], [b]) => a - b)
    .flatMap(([, equals]) => shuffled(equals, random).map(record => record.host))
}

/**
 * The IP addresses of a host, IPv4 first: more servers take mail from IPv4 alone or judge IPv6 senders harder (Google
 * demands PTR and SPF of them), and many machines have no IPv6 route at all. A fault only when neither family answered.
 * Without IPv6 here (`hasIpv6` is false) AAAA is asked only for a host without IPv4, to tell it from one without any
 * address.
 */
export async function addressesOf(
  resolver: Resolver,
  host: string,
  signal?: AbortSignal,
  hasIpv6 = true,
): Promise<{ readonly addresses: readonly string[] } | DnsFailure> {
  const askAaaa = () => resolver.resolve(host, 'AAAA', signal)
  const asking = resolver.resolve(host, 'A', signal)
  const [a, early] = await Promise.all([asking, hasIpv6 ? askAaaa() : null])
  const aaaa = early ?? (recordsOf(a).length > 0 ? NO_RECORDS : await askAaaa())
  const addresses = [...recordsOf(a), ...recordsOf(aaaa)]
  if (addresses.length > 0) return { addresses: [...new Set(addresses)].slice(0, ADDRESSES_MAX) }
  return graver(failureOf(a), failureOf(aaaa))
}

/** Postfix tries as many (`smtp_mx_address_limit`); a host with a hundred addresses would make us an amplifier. */
const ADDRESSES_MAX = 5
/** More than any honest domain has; the best of them are kept. */
const HOSTS_MAX = 20

function routeFrom(records: readonly MxRecord[]): Route {
  const [first, ...others] = records
  // RFC 7505 §3: a lone "." means no mail; beside other records it is a mistake and counts for nothing.
  if (first && others.length === 0 && (first.host === '' || first.host === '.')) {
    return { kind: 'null-mx' }
  }
  const hosts = reachableHosts(records)
  // No implicit exchanger here: there are MX records, they only lead nowhere (RFC 5321 §5.1).
  return hosts.length === 0 ? { kind: 'no-mail' } : { kind: 'mx', hosts }
}

function reachableHosts(records: readonly MxRecord[]): MxRecord[] {
  const sorted = records
    .filter(record => isHostName(record.host))
    .map(({ preference, host }) => ({ preference, host: plainName(host) }))
    .sort((a, b) => a.preference - b.preference || (a.host < b.host ? -1 : 1))
  const best = new Map<string, MxRecord>()
  for (const record of sorted) if (!best.has(record.host)) best.set(record.host, record)
  return [...best.values()].slice(0, HOSTS_MAX)
}

/**
 * RFC 1123 §2.1 with underscores, which real exchangers have. A last label that is a number makes the text an IP
 * address, which an MX must not be (RFC 5321 §5.1).
 */
const isHostName = (host: string) =>
  host.replace(/\.$/, '').length <= NAME_OCTETS_MAX &&
  /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?$/i.test(host) &&
  !/(^|\.)(\d+|0x[0-9a-f]*)\.?$/i.test(host)

/** RFC 1035 §2.3.4: 255 octets on the wire are 253 in text. */
const NAME_OCTETS_MAX = 253

async function implicitRoute(
  resolver: Resolver,
  domain: string,
  signal: AbortSignal | undefined,
): Promise<Route> {
  const found = await addressesOf(resolver, domain, signal)
  if ('addresses' in found) return { kind: 'implicit', host: plainName(domain) }
  if (found.fault === 'server' || found.fault === 'timeout') {
    return { ...found, kind: 'unknown', fault: found.fault }
  }
  return { kind: 'no-mail' }
}

const recordsOf = (answer: DnsAnswer<'A' | 'AAAA'>) => ('records' in answer ? answer.records : [])
const failureOf = (answer: DnsAnswer<'A' | 'AAAA'>): DnsFailure =>
  'fault' in answer ? answer : { fault: 'no-data' }

const NO_RECORDS: DnsAnswer<'AAAA'> = { records: [] }

/** Of two faults the one that leaves more open, so that half an answer is never taken for a whole one. */
const graver = (one: DnsFailure, other: DnsFailure): DnsFailure =>
  GRAVITY.indexOf(one.fault) >= GRAVITY.indexOf(other.fault) ? one : other
const GRAVITY: readonly DnsFault[] = ['no-data', 'no-name', 'server', 'timeout']

/** Why mail for a domain goes nowhere, or why nobody knows, in words that go on a sentence; null where it goes somewhere. */
export function noMailText(route: Route): string | null {
  switch (route.kind) {
    case 'no-domain':
      return 'the DNS says that there is no such name'
    case 'no-mail':
      return 'the domain has neither MX nor address records'
    case 'null-mx':
      return 'the domain publishes a null MX (RFC 7505)'
    case 'unknown':
      if (route.detail !== undefined) return route.detail
      return route.fault === 'timeout' ? 'the DNS did not answer' : 'the DNS servers failed'
    case 'mx':
    case 'implicit':
      return null
  }
}
