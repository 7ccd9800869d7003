import type { Resolver } from '../engine/dns/resolver.ts'

export type UrlPolicy = {
  readonly resolver: Resolver
  /** Which addresses may be dialled. */
  readonly mayDial: (ip: string) => boolean
}

/**
 * What is wrong with a URL as the place where events are sent, in a sentence; null: nothing. Whoever sends judges
 * again, with `readDestination` and `judgedAddresses`, as names change.
 */
export async function validateWebhookUrl(
  text: string,
  urlPolicy: UrlPolicy,
): Promise<string | null> {
  const url = parseDestination(text, urlPolicy.mayDial)
  if (typeof url === 'string') return url
  const judged = await checkedAddresses(url.hostname, urlPolicy)
  return 'fault' in judged ? judged.fault : null
}

/** A URL whose shape is that of a destination, or what is wrong with it, in a sentence. */
export function parseDestination(text: string, mayDial: UrlPolicy['mayDial']): URL | string {
  const given = urlOf(text)
  return typeof given === 'string' ? given : (validateShape(given, mayDial) ?? given)
}

/** Addresses that may be dialled, or what is wrong: a code, and a sentence. */
export type CheckedAddresses =
  | { readonly addresses: readonly string[] }
  | { readonly code: 'dns_error' | 'address_not_public'; readonly fault: string }

/**
 * The addresses of a URL's host, all of which may be dialled, or what is wrong: one that may not is enough, as nobody
 * knows which of them will be dialled elsewhere.
 */
export async function checkedAddresses(
  hostname: string,
  { resolver, mayDial }: UrlPolicy,
  signal?: AbortSignal,
): Promise<CheckedAddresses> {
  const literal = literalOf(hostname)
  const host = literal ?? nameOf(hostname)
  const addresses = literal === null ? await addressesOf(host, resolver, signal) : [literal]
  if (typeof addresses === 'string') return { code: 'dns_error', fault: addresses }
  const inside = addresses.find(ip => !mayDial(ip))
  if (inside === undefined) return { addresses }
  return { code: 'address_not_public', fault: notPublic(host, inside) }
}

/**
 * The IP address that a URL's host is written as; null: it is a name. The URL standard has already written every odd
 * form of an IPv4 address (octal, hexadecimal, short, full-width) as four numbers.
 */
export const literalOf = (hostname: string): string | null =>
  /^\[(.+)\]$/.exec(hostname)?.[1] ?? /^[\d.]+$/.exec(hostname)?.[0] ?? null

/** The name of a URL's host as certificates have it: without the dot of the root. */
export const nameOf = (hostname: string) => hostname.replace(/\.$/, '')

/** Longer ones are refused by many servers. */
export const URL_LENGTH_MAX = 2_048

function urlOf(text: string): URL | string {
  if (text.length > URL_LENGTH_MAX) return `It is longer than ${URL_LENGTH_MAX} characters.`
  // The URL standard passes over line breaks and tabs, so what is shown would not be what is asked.
  if (/[\s\p{Cc}\p{Cf}]/u.test(text)) return 'It holds blanks or control characters.'
  if (!URL.canParse(text)) return 'It is no URL. Write one such as https://app.example.com/hook.'
  return new URL(text)
}

function validateShape(url: URL, mayDial: UrlPolicy['mayDial']): string | null {
  if (url.protocol !== 'https:' && !isLocalPlain(url, mayDial))
    return 'It must begin with https://.'
  if (url.username !== '' || url.password !== '') {
    return 'It must not hold a user name or a password: what is sent is signed instead.'
  }
  if (url.hash !== '') return 'It must not hold a fragment (#…): that is never sent.'
  const port = url.port === '' ? (url.protocol === 'https:' ? HTTPS_PORT : 80) : Number(url.port)
  if (port === HTTPS_PORT || (port >= FREE_PORTS_FROM && !OTHER_SERVICES.has(port))) return null
  return `Its port ${port} is not one of a web server: use 443, or one from ${FREE_PORTS_FROM} that no other well-known service has.`
}

/**
 * Plain HTTP, for development: to this machine alone, and only where its loopback address may be dialled. What a name
 * means in the DNS does not count, as that can change.
 */
function isLocalPlain({ protocol, hostname }: URL, mayDial: UrlPolicy['mayDial']): boolean {
  const ip = isLocalhost(hostname) ? LOCALHOST : literalOf(hostname)
  return protocol === 'http:' && ip !== null && isLoopback(ip) && mayDial(ip)
}

/** RFC 1122 §3.2.1.3 (g) and RFC 4291 §2.5.3. */
export const isLoopback = (ip: string) => /^127\./.test(ip) || ip === '::1'

const LOCALHOST = '127.0.0.1'
/** RFC 6761 §6.3: these names mean this machine, and are no question for the DNS. */
const isLocalhost = (hostname: string) => /^(.+\.)?localhost$/.test(nameOf(hostname))

const HTTPS_PORT = 443
/** Below it ports belong to other services by registration (RFC 6335 §6). */
const FREE_PORTS_FROM = 1_024
/** Services that an attacker would like to reach with a request of ours: databases, brokers, remote control, and what browsers block. */
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
  const answers = await Promise.all([
    resolver.resolve(name, 'A', signal),
    resolver.resolve(name, 'AAAA', signal),
  ])
  const found = answers.flatMap(answer => ('records' in answer ? answer.records : []))
  const isUnsure = answers.some(
    answer => 'fault' in answer && (answer.fault === 'server' || answer.fault === 'timeout'),
  )
  // An address that could not be looked up may be the one that is not public.
  if (isUnsure) return `The addresses of ${name} could not be looked up. Try again later.`
  return found.length > 0 ? found : `The name ${name} has no address in the DNS.`
}

/** Which address a name has inside is nothing to whoever asks from outside: the DNS may tell it to us alone. */
const notPublic = (host: string, ip: string) =>
  host.includes(ip)
    ? `The address ${ip} is not public.`
    : `The name ${host} has an address that is not public.`
