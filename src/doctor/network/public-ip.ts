import { type Finding, ok, warn } from '../finding.ts'
import { isIpv6, isSameIp, parseIp } from '../identity/reverse-name.ts'
import type { HandshakeResult } from './smtp-handshake.ts'

/** The addresses that servers see us come from: one of each family at most. */
export type OwnAddresses = { readonly addresses: readonly string[]; readonly finding: Finding }

type Ours = {
  readonly helo: string
  readonly sourceAddress: string | null
  readonly proxied: boolean
  readonly isPublic: (ip: string) => boolean
}

/**
 * Many servers tell in their reply to EHLO, or as they refuse us, from where we come; what most say counts. Where
 * none does, it is the address of our end of the connections, if that is a public one.
 */
export function ownAddresses(visits: readonly HandshakeResult[], ours: Ours): OwnAddresses {
  const families = [false, true].map(v6 => ofFamily(visits, ours, v6)).filter(one => one !== null)
  const addresses = families.map(({ ip }) => ip)
  if (addresses.length === 0) return { addresses, finding: unknown(visits) }
  const says = `we come from ${families.map(({ ip, source }) => `${ip} (${source})`).join(' and ')}`
  const others = families.flatMap(({ others }) => others)
  if (others.length === 0) return { addresses, finding: ok(says) }
  const finding = warn(
    `${says}, but also from ${others.join(', ')}`,
    'Each address needs its own PTR record and good name: dial from one with --source-address, or have your network use one.',
  )
  return { addresses, finding }
}

function unknown(visits: readonly HandshakeResult[]): Finding {
  const isReached = visits.some(({ outcome }) => ANSWERED.has(outcome.kind))
  return warn(
    'from which address we come is not known: no mail server told',
    `${isReached ? 'Call at other mail servers with --ask' : 'Make port 25 reachable first'}; or name our public address with --source-address, if this machine has it.`,
  )
}

const ANSWERED: ReadonlySet<HandshakeResult['outcome']['kind']> = new Set(['greeted', 'refused'])

/** One server may be wrong, or stand in our own network. */
const WITNESSES_MIN = 2

type Seen = { readonly ip: string; readonly source: string; readonly others: readonly string[] }

function ofFamily(visits: readonly HandshakeResult[], ours: Ours, v6: boolean): Seen | null {
  const fits = (ip: string | null): ip is string =>
    ip !== null && isIpv6(ip) === v6 && ours.isPublic(ip)
  const reported = visits.flatMap(visit => reportedBy(visit, ours.helo).filter(fits).slice(-1))
  const counted = [...Map.groupBy(reported, ip => ip)].sort(([, a], [, b]) => b.length - a.length)
  const [most, ...others] = counted
  if (most !== undefined) {
    return {
      ip: most[0],
      source: `as ${most[1].length === 1 ? 'one server says' : `${most[1].length} servers say`}`,
      others: others.filter(([, said]) => said.length >= WITNESSES_MIN).map(([ip]) => ip),
    }
  }
  const own = [...visits.map(visit => visit.localAddress), ours.sourceAddress].find(fits)
  if (own === undefined || ours.proxied) return null
  return { ip: own, source: 'the address of this machine', others: [] }
}

/** Gmail: "at your service, [192.0.2.1]"; Exim and Outlook: "Hello name [192.0.2.1]"; blocked: "Client host [192.0.2.1]". */
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
    .filter(ip => parseIp(ip) !== null && !isSameIp(ip, '::'))
