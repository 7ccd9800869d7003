import type { Resolver } from '../dns/resolver.ts'

export type Judges = {
  readonly resolver: Resolver
  /** Which addresses may be dialled. */
  readonly mayDial: (ip: string) => boolean
}

/**
 * What is wrong with a URL as the place where events are sent, in a sentence; null: nothing. A name is looked up, and
 * all its addresses must be public: whoever sends must judge again the address that it dials, as names change.
 */
export async function faultOfDestination(text: string, judges: Judges): Promise<string | null> {
  const given = urlOf(text)
  if (typeof given === 'string') return given
  return faultOfShape(given) ?? faultOfHost(given.hostname, judges)
}

/** Longer ones are refused by many servers. */
export const URL_LENGTH_MAX = 2_048

function urlOf(text: string): URL | string {
  if (text.length > URL_LENGTH_MAX) return `It is longer than ${URL_LENGTH_MAX} characters.`
  // The URL standard passes over line breaks and tabs, so what is shown would not be what is asked.
  if (/[\s\p{Cc}\p{Cf}]/u.test(text)) return 'It holds blanks or control characters.'
  if (!URL.canParse(text)) return 'It is no URL. Write one such as https://app.example.com/hook.'
  return new URL(text)
}

function faultOfShape(url: URL): string | null {
  if (url.protocol !== 'https:') return 'It must begin with https://.'
  if (url.username !== '' || url.password !== '') {
    return 'It must not hold a user name or a password: what is sent is signed instead.'
  }
  if (url.hash !== '') return 'It must not hold a fragment (#…): that is never sent.'
  const port = url.port === '' ? HTTPS_PORT : Number(url.port)
  if (port === HTTPS_PORT || (port >= FREE_PORTS_FROM && !OTHER_SERVICES.has(port))) return null
  return `Its port ${port} is not one of a web server: use 443, or one from ${FREE_PORTS_FROM} that no other well-known service has.`
}

const HTTPS_PORT = 443
/** Below it ports belong to other services by registration (RFC 6335 §6). */
const FREE_PORTS_FROM = 1_024
/** Services that an attacker would like to reach with a request of ours: databases, brokers, remote control, and what browsers block. */
const OTHER_SERVICES = new Set([
  ...[1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 2379, 3306, 3389, 3659, 4045, 4190, 5060],
  ...[5061, 5432, 5672, 5900, 6000, 6379, 6380, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697],
  ...[9042, 9200, 9300, 10080, 11211, 27017],
])

/** The URL standard has already written every odd form of an IPv4 address (octal, hexadecimal, short, full-width) as four numbers. */
async function faultOfHost(
  hostname: string,
  { resolver, mayDial }: Judges,
): Promise<string | null> {
  const literal = /^\[(.+)\]$/.exec(hostname)?.[1] ?? /^[\d.]+$/.exec(hostname)?.[0]
  if (literal !== undefined) return mayDial(literal) ? null : notPublic(hostname, literal)
  const name = hostname.replace(/\.$/, '')
  const addresses = await addressesOf(name, resolver)
  if (typeof addresses === 'string') return addresses
  const inside = addresses.find(ip => !mayDial(ip))
  return inside === undefined ? null : notPublic(name, inside)
}

async function addressesOf(name: string, resolver: Resolver): Promise<readonly string[] | string> {
  // RFC 6761 §6.3: these names mean this machine, and are no question for the DNS.
  if (/^(.+\.)?localhost$/.test(name)) return ['127.0.0.1']
  const answers = await Promise.all([resolver.resolve(name, 'A'), resolver.resolve(name, 'AAAA')])
  const found = answers.flatMap(answer => ('records' in answer ? answer.records : []))
  const isUnsure = answers.some(
    answer => 'fault' in answer && (answer.fault === 'server' || answer.fault === 'timeout'),
  )
  // An address that could not be looked up may be the one that is not public.
  if (isUnsure) return `The addresses of ${name} could not be looked up. Try again later.`
  return found.length > 0 ? found : `The name ${name} has no address in the DNS.`
}

const notPublic = (host: string, ip: string) =>
  host.includes(ip)
    ? `The address ${ip} is not public.`
    : `The name ${host} has the address ${ip}, which is not public.`
