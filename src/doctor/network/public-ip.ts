import { isIpv6, isSameIp, plainIp } from '../../platform/ip.ts'
import { type Finding, ok, warn } from '../finding.ts'
import type { HandshakeResult } from './smtp-handshake.ts'

/** The public IP addresses as mail servers see them, at most one per family. */
type OwnAddresses = { readonly addresses: readonly string[]; readonly finding: Finding }

type LocalIdentity = {
  readonly helo: string
  readonly sourceAddress: string | null
  readonly proxied: boolean
  readonly isPublic: (ip: string) => boolean
}

/**
 * Determines the public IP addresses. Many servers report the client address in their EHLO reply or
 * rejection; the majority counts. Without a report, the local address counts if it is public.
 */
export function ownAddresses(
  handshakes: readonly HandshakeResult[],
  local: LocalIdentity,
): OwnAddresses {
  const families = [false, true]
    .map(v6 => findAddress(handshakes, local, v6))
    .filter(one => one !== null)
  const addresses = families.map(({ ip }) => ip)
  if (addresses.length === 0) return { addresses, finding: unknown(handshakes) }
  const says = `the public IP address is ${families.map(({ ip, source }) => `${ip} (${source})`).join(' and ')}`
  const others = families.flatMap(({ others }) => others)
  if (others.length === 0) return { addresses, finding: ok(says) }
  const finding = warn(
    `${says}, but some servers see ${others.join(', ')}`,
    'Each address needs its own PTR record and reputation. Set one with --source-address, or configure the network to use one.',
  )
  return { addresses, finding }
}

function unknown(handshakes: readonly HandshakeResult[]): Finding {
  const isReached = handshakes.some(({ outcome }) => RESPONDED.has(outcome.kind))
  return warn(
    'the public IP address is unknown: no mail server reported it',
    `${isReached ? 'Check other mail servers with --ask' : 'Make port 25 reachable first'}, or set the public address with --source-address if this machine has it.`,
  )
}

const RESPONDED: ReadonlySet<HandshakeResult['outcome']['kind']> = new Set(['greeted', 'refused'])

/** A single server may be wrong, or be in the local network. */
const REPORTS_MIN = 2

type ReportedAddress = {
  readonly ip: string
  readonly source: string
  readonly others: readonly string[]
}

function findAddress(
  handshakes: readonly HandshakeResult[],
  local: LocalIdentity,
  v6: boolean,
): ReportedAddress | null {
  const fits = (ip: string | null): ip is string =>
    ip !== null && isIpv6(ip) === v6 && local.isPublic(ip)
  const reported = handshakes.flatMap(one => reportedBy(one, local.helo).filter(fits).slice(-1))
  const counted = [...Map.groupBy(reported, ip => ip)].sort(([, a], [, b]) => b.length - a.length)
  const [most, ...others] = counted
  if (most !== undefined) {
    return {
      ip: most[0],
      source: `reported by ${most[1].length === 1 ? '1 server' : `${most[1].length} servers`}`,
      others: others.filter(([, reports]) => reports.length >= REPORTS_MIN).map(([ip]) => ip),
    }
  }
  const ip = [...handshakes.map(one => one.localAddress), local.sourceAddress].find(fits)
  if (ip === undefined || local.proxied) return null
  return { ip, source: 'local address', others: [] }
}

/**
 * Extracts the client address from a reply. Gmail: "at your service, [192.0.2.1]"; Exim and
 * Outlook: "Hello name [192.0.2.1]"; rejections: "Client host [192.0.2.1]".
 */
function reportedBy({ outcome }: HandshakeResult, helo: string): string[] {
  if (outcome.kind === 'greeted') {
    const [line = ''] = outcome.ehlo.text.split('\n')
    return addressesIn(line.replace(helo, ''), /\[(?:IPv6:)?([0-9a-f.:]+)\]/gi)
  }
  if (outcome.kind !== 'refused') return []
  return addressesIn(
    outcome.reply.text,
    /(?<![\w.:])([0-9a-f]*[.:][0-9a-f.:]*[0-9a-f])(?![\w:]|\.\d)/gi,
  )
}

const addressesIn = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)]
    .map(([, ip = '']) => ip.toLowerCase().replace(/^::ffff:(?=\d+\.)/, ''))
    .filter(ip => plainIp(ip) !== null && !isSameIp(ip, '::'))

/**
 * Checks IPv6 connectivity; null if no mail server has an IPv6 address. No IPv6 is fine; a route
 * that does not work is a warning.
 */
export function ipv6Finding(handshakes: readonly HandshakeResult[]): Finding | null {
  const tried = handshakes.filter(({ ip }) => ip !== null && isIpv6(ip))
  const dialed = tried.filter(({ outcome }) => outcome.kind !== 'not-public')
  if (dialed.length === 0) return null
  const responding = dialed.filter(
    ({ outcome }) => outcome.kind === 'greeted' || outcome.kind === 'refused',
  )
  if (responding.length > 0) {
    return ok(`${responding.length} of ${dialed.length} mail servers respond over IPv6`)
  }
  const codes = dialed.map(({ outcome }) => (outcome.kind === 'unreached' ? outcome.code : ''))
  if (codes.every(code => NO_ROUTE.has(code))) {
    return ok('this machine has only IPv4, which is enough for nearly all mail servers')
  }
  return warn(
    'this machine has an IPv6 route, but no mail server responds over it; connections to IPv6-only servers time out',
    'Open the port for IPv6, remove the IPv6 route, or set an IPv4 address with --source-address.',
  )
}

const NO_ROUTE: ReadonlySet<string> = new Set(['ENETUNREACH', 'EADDRNOTAVAIL', 'EAFNOSUPPORT'])
