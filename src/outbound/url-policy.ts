import type { Resolver } from '../engine/dns/resolver.ts'
import { isLoopback } from '../platform/ip.ts'
import { parseUrl } from '../platform/url.ts'

export type UrlPolicy = {
  readonly resolver: Resolver
  /** Whether an IP address may be dialed. */
  readonly mayDial: (ip: string) => boolean
}

/**
 * Validates the URL of a webhook or a list. Returns an error message, or null if it is valid. The
 * sender of a request checks again with `parseDestination` and `checkedAddresses`, because DNS
 * records change.
 */
export async function validateUrl(text: string, urlPolicy: UrlPolicy): Promise<string | null> {
  const url = parseDestination(text, urlPolicy.mayDial)
  if (typeof url === 'string') return url
  const checked = await checkedAddresses(url.hostname, urlPolicy)
  return 'fault' in checked ? checked.fault : null
}

/** Parses a URL that a request may be sent to. Returns an error message if its form is not allowed. */
export function parseDestination(text: string, mayDial: UrlPolicy['mayDial']): URL | string {
  const url = readUrl(text)
  return typeof url === 'string' ? url : (validateShape(url, mayDial) ?? url)
}

/** Addresses that may be dialed, or an error code and message. */
type CheckedAddresses =
  | { readonly addresses: readonly string[] }
  | { readonly code: 'dns_error' | 'address_not_public'; readonly fault: string }

/**
 * Resolves the host of a URL and checks that all addresses may be dialed. One forbidden address
 * rejects the host, because another resolver may pick that one.
 */
export async function checkedAddresses(
  hostname: string,
  { resolver, mayDial }: UrlPolicy,
  signal?: AbortSignal,
): Promise<CheckedAddresses> {
  const literal = ipLiteral(hostname)
  const host = literal ?? hostName(hostname)
  const addresses = literal === null ? await addressesOf(host, resolver, signal) : [literal]
  if (typeof addresses === 'string') return { code: 'dns_error', fault: addresses }
  const forbidden = addresses.find(ip => !mayDial(ip))
  if (forbidden === undefined) return { addresses }
  return { code: 'address_not_public', fault: notPublicMessage(host, forbidden) }
}

/**
 * Returns the IP address in a URL's host, or null if it is a name. The URL standard has already
 * normalized every form of an IPv4 address (octal, hexadecimal, short, full-width) to four numbers.
 */
export const ipLiteral = (hostname: string): string | null =>
  /^\[(.+)\]$/.exec(hostname)?.[1] ?? /^[\d.]+$/.exec(hostname)?.[0] ?? null

/** Returns the host name of a URL as certificates have it: without the trailing dot. */
export const hostName = (hostname: string) => hostname.replace(/\.$/, '')

/** Many servers reject longer URLs. */
export const URL_LENGTH_MAX = 2_048

function readUrl(text: string): URL | string {
  if (text.length > URL_LENGTH_MAX) return `It is longer than ${URL_LENGTH_MAX} characters.`
  // URL parsing drops line breaks and tabs, so the URL shown would differ from the URL requested.
  if (/[\s\p{Cc}\p{Cf}]/u.test(text)) return 'It contains spaces or control characters.'
  return parseUrl(text) ?? 'It is not a URL, such as https://www.example.com/path.'
}

function validateShape(url: URL, mayDial: UrlPolicy['mayDial']): string | null {
  if (url.protocol !== 'https:' && !isLocalPlain(url, mayDial))
    return 'It must begin with https://.'
  if (url.username !== '' || url.password !== '') {
    return 'It must not contain a username or a password.'
  }
  if (url.hash !== '') return 'It must not contain a fragment (#…), which is never sent.'
  const port = url.port === '' ? (url.protocol === 'https:' ? HTTPS_PORT : 80) : Number(url.port)
  if (port === HTTPS_PORT || (port >= FREE_PORTS_FROM && !OTHER_SERVICES.has(port))) return null
  return `Port ${port} is not allowed. Use 443, or a port from ${FREE_PORTS_FROM} that no other well-known service uses.`
}

/**
 * Plain HTTP is for development: allowed to loopback only, and only if the loopback address may be
 * dialed. DNS names do not count, because their addresses can change.
 */
function isLocalPlain({ protocol, hostname }: URL, mayDial: UrlPolicy['mayDial']): boolean {
  const ip = isLocalhost(hostname) ? LOCALHOST : ipLiteral(hostname)
  return protocol === 'http:' && ip !== null && isLoopback(ip) && mayDial(ip)
}

const LOCALHOST = '127.0.0.1'
/** RFC 6761 §6.3: these names are loopback and need no DNS query. */
const isLocalhost = (hostname: string) => /^(.+\.)?localhost$/.test(hostName(hostname))

const HTTPS_PORT = 443
/** Lower ports are registered to other services (RFC 6335 §6). */
const FREE_PORTS_FROM = 1_024
/**
 * Services that an attacker could target through ev: databases, brokers, remote control, and
 * ports that browsers block.
 */
const OTHER_SERVICES = new Set([
  ...[1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 2379, 3306, 3389, 3659, 4045, 4190, 5060],
  ...[5061, 5432, 5672, 5900, 6000, 6379, 6380, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697],
  ...[9042, 9200, 9300, 10080, 11211, 27017],
])

async function addressesOf(
  name: string,
  resolver: Resolver,
  signal?: AbortSignal,
): Promise<readonly string[] | string> {
  if (isLocalhost(name)) return [LOCALHOST]
  const replies = await Promise.all([
    resolver.resolve(name, 'A', signal),
    resolver.resolve(name, 'AAAA', signal),
  ])
  const found = replies.flatMap(reply => ('records' in reply ? reply.records : []))
  const isUnsure = replies.some(
    reply => 'fault' in reply && (reply.fault === 'server' || reply.fault === 'timeout'),
  )
  // An address that could not be resolved may be a private one.
  if (isUnsure) return `The addresses of ${name} could not be looked up. Try again later.`
  return found.length > 0 ? found : `The name ${name} has no address in the DNS.`
}

/**
 * Names the address only if the caller gave it: the resolver of this machine may return internal
 * addresses.
 */
const notPublicMessage = (host: string, ip: string) =>
  host.includes(ip)
    ? `The address ${ip} is not public.`
    : `The name ${host} has an address that is not public.`
