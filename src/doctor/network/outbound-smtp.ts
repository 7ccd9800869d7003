import { findSharedHost } from '../../engine/probe/interception.ts'
import { REFERENCE_MX_HOSTS } from '../../engine/probe/outbound-reachability.ts'
import type { Reply } from '../../engine/smtp/reply.ts'
import { plainIp } from '../../platform/ip.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import type { HandshakeResult, Outcome } from './smtp-handshake.ts'

/** Checks that mail servers are reachable, and if not, why. */
export function portFinding(
  handshakes: readonly HandshakeResult[],
  port: number,
  proxied: boolean,
): Finding {
  const best = [...Map.groupBy(handshakes, ({ host }) => host).values()].map(bestOf)
  const greeted = best.filter(is('greeted'))
  const refused = best.filter(is('refused'))
  if (greeted.length + refused.length === 0) return unreachable(best, port, proxied)
  const interceptor = findInterceptorIn(greeted)
  if (interceptor !== null) return intercepted(interceptor, greeted, port, proxied)
  const count = `${greeted.length} of ${best.length} mail servers`
  if (refused.length > 0) return rejected(`${count} accepted port ${port}`, greeted, refused)
  const others = best.filter(handshake => handshake.outcome.kind !== 'greeted')
  const names = greeted.map(({ host }) => host).join(', ')
  const says = `${count} accepted port ${port}: ${names}`
  if (others.length === 0) return ok(says)
  const missing = others.map(({ host, outcome }) => `${host} (${labelOf(outcome)})`).join(', ')
  if (others.length <= greeted.length) return ok(`${says}; not ${missing}`)
  const unreached = others.filter(is('unreached'))
  if (unreached.length > 0 && unreached.every(hasNoRoute))
    return warn(`${says}; not ${missing}`, ONLY_IPV6)
  return warn(
    `${says}; not ${missing}`,
    'If most are not found, fix the DNS. If they do not respond, ask your hosting provider whether it limits outbound mail.',
  )
}

/** Whether a server with IPv4 addresses alone was dialed from a machine with IPv6 alone. */
const hasNoRoute = ({ outcome }: With<'unreached'>) => outcome.code === 'ENETUNREACH'

const ONLY_IPV6 =
  'This machine has no route to the others, which have no IPv6 address. Give it an IPv4 address, or use a network with NAT64 and DNS servers with DNS64.'

/** Returns the host that answers instead of several providers; null if they answer themselves. */
const findInterceptorIn = (greeted: readonly With<'greeted'>[]): string | null =>
  findSharedHost(
    greeted
      .filter(({ host }) => REFERENCE_HOSTS.has(host))
      .map(({ host, outcome }) => ({ host, text: outcome.greeting.text })),
  )

/** Each is of another provider; other hosts may be names of one server. */
const REFERENCE_HOSTS: ReadonlySet<string> = new Set(REFERENCE_MX_HOSTS)

function intercepted(
  interceptor: string,
  greeted: readonly With<'greeted'>[],
  port: number,
  proxied: boolean,
): Finding {
  const names = greeted.map(({ host }) => host).join(', ')
  return fail(
    `${sanitizeText(interceptor)} answers on port ${port} instead of the mail servers: ${names}`,
    proxied
      ? `The proxy, or the network where it runs, intercepts outbound mail, so nothing can be verified. Use another proxy.`
      : `The network intercepts outbound mail, so nothing can be verified. Ask your network or hosting provider not to intercept it, or use --proxy socks5://… on a machine where port ${port} is open.`,
  )
}

/**
 * Whether mail servers were found in the DNS and contacted, and none accepted a connection, or
 * something else answered instead of them. If none was contacted, nothing is known about the port.
 */
export function isPortBlocked(handshakes: readonly HandshakeResult[]): boolean {
  const greeted = handshakes.filter(is('greeted'))
  if (greeted.length > 0) return findInterceptorIn(greeted) !== null
  return handshakes.some(({ outcome: { kind } }) => CONTACTED.has(kind))
}

const CONTACTED: ReadonlySet<Outcome['kind']> = new Set(['refused', 'mute', 'unreached'])

type With<K extends Outcome['kind']> = HandshakeResult & {
  readonly outcome: Extract<Outcome, { kind: K }>
}

const is =
  <K extends Outcome['kind']>(kind: K) =>
  (handshake: HandshakeResult): handshake is With<K> =>
    handshake.outcome.kind === kind

/** From best to worst. */
const ORDER: readonly Outcome['kind'][] = [
  'greeted',
  'refused',
  'mute',
  'unreached',
  'not-public',
  'unresolved',
]

const bestOf = (handshakes: readonly HandshakeResult[]): HandshakeResult =>
  handshakes.toSorted(
    (a, b) => ORDER.indexOf(a.outcome.kind) - ORDER.indexOf(b.outcome.kind),
  )[0] as HandshakeResult

function rejected(
  says: string,
  greeted: readonly HandshakeResult[],
  refused: readonly With<'refused'>[],
): Finding {
  const replies = refused
    .map(({ host, outcome }) => `${host} replied "${textOf(outcome.reply)}"`)
    .join('; ')
  const todo =
    'The servers reject the IP address or the HELO name; the reply may say why. Fix the problems with PTR, HELO and blocklists below.'
  return greeted.length === 0
    ? fail(`${says}, others rejected the connection: ${replies}`, todo)
    : warn(`${says}; ${replies}`, todo)
}

const textOf = ({ code, enhanced, text }: Reply) =>
  sanitizeText(`${code} ${enhanced === null ? '' : `${enhanced} `}${text}`, REPLY_CHARACTERS_MAX)
/** Enough for the first sentence of a rejection. */
const REPLY_CHARACTERS_MAX = 160

function unreachable(best: readonly HandshakeResult[], port: number, proxied: boolean): Finding {
  if (best.some(is('mute'))) {
    return fail(
      `connections to port ${port} open, but no mail server responds on them`,
      proxied
        ? `The proxy, or a firewall where it runs, intercepts them: port ${port} is probably blocked there. Run "ev doctor" there.`
        : 'A firewall or proxy intercepts them. Ask your network or hosting provider not to intercept outbound mail.',
    )
  }
  const dialed = best.filter(is('unreached'))
  const [first] = dialed
  if (first === undefined) return noHostFound(best)
  const names = dialed.map(({ host }) => host).join(', ')
  if (proxied) {
    const { why, todo } = PROXY_CAUSES[first.outcome.code] ?? {
      why: sanitizeText(first.outcome.detail),
      todo: 'Check that the proxy runs, accepts the credentials and allows connections to port {port}.',
    }
    return fail(
      `no mail server can be reached through the proxy (${toPort(why, port)}): ${names}`,
      toPort(todo, port),
    )
  }
  const { why, todo } = causeOf(dialed, port)
  return fail(`no mail server can be reached (${why}): ${names}`, todo)
}

function noHostFound(best: readonly HandshakeResult[]): Finding {
  const isPrivate = best.some(is('not-public'))
  return isPrivate
    ? fail(
        'the addresses of the mail servers are not public, so none was contacted',
        'The DNS returns addresses of a private network. Set another resolver with --dns, or allow the addresses with --allow-ranges.',
      )
    : fail(
        'the mail servers were not found in the DNS, so none was contacted',
        'Fix the DNS first: set a working server with --dns.',
      )
}

/** Derives the cause from the most frequent error code: firewalls drop, reject or forbid. */
function causeOf(dialed: readonly With<'unreached'>[], port: number): Cause {
  const codes = dialed.map(({ outcome }) => outcome.code)
  const counts = [...Map.groupBy(codes, code => code)].sort(([, a], [, b]) => b.length - a.length)
  const [code = ''] = counts[0] ?? []
  const byAddress = dialed.some(({ host }) => plainIp(host) !== null)
  const cause = CAUSES[code] ?? {
    why: sanitizeText(dialed[0]?.outcome.detail ?? code),
    todo: BLOCKED,
  }
  const why = byAddress ? `${cause.why}, by name and by address` : cause.why
  return { why, todo: toPort(cause.todo, port) }
}

const toPort = (text: string, port: number) => text.replaceAll('{port}', `${port}`)

type Cause = { readonly why: string; readonly todo: string }

const BLOCKED =
  'Outbound port {port} is blocked, as at most hosting providers. Ask yours to open it, or use --proxy socks5://… on a machine where it is open.'

const CAUSES: Readonly<Record<string, Cause>> = {
  ETIMEDOUT: { why: 'connections time out', todo: BLOCKED },
  ECONNREFUSED: {
    why: 'all connections are refused',
    todo: 'A firewall of this machine or network probably rejects port {port}. Open it there, ask your hosting provider, or use --proxy socks5://….',
  },
  EHOSTUNREACH: { why: 'host unreachable', todo: BLOCKED },
  ENETUNREACH: {
    why: 'this machine has no route to the internet',
    todo: 'Give this machine or its container a route to the internet.',
  },
  EACCES: {
    why: 'permission denied',
    todo: 'A firewall or security policy of this machine forbids port {port}. Allow it there.',
  },
  EPERM: {
    why: 'permission denied',
    todo: 'A firewall or security policy of this machine forbids port {port}. Allow it there.',
  },
  EADDRNOTAVAIL: {
    why: 'the source address does not belong to this machine',
    todo: 'Set --source-address to an address of this machine; ip address lists them.',
  },
  EMFILE: { why: 'too many open files', todo: 'Raise the limit of open files (ulimit -n).' },
}

/** By the codes of `dial.ts`. */
const PROXY_CAUSES: Readonly<Record<string, Cause>> = {
  EPROXYAUTH: {
    why: 'it rejects the user name or the password',
    todo: 'Correct them in --proxy socks5://user:password@host:port. Percent-encode characters such as @, : and /.',
  },
  EPROXYRULE: {
    why: 'a rule of the proxy forbids port {port}',
    todo: 'Allow connections to port {port} in the settings of the proxy, or use another one: most proxies for rent forbid it.',
  },
  EPROXYFAULT: {
    why: 'it reports a failure of its own',
    todo: 'Read the log of the proxy: it may have too many connections or open files, or not reach port {port}. Run "ev doctor" there.',
  },
  EPROXYTARGET: {
    why: 'it does not reach them',
    todo: 'Port {port} is probably blocked where the proxy runs. Run "ev doctor" there.',
  },
  EPROXYCLOSED: {
    why: 'it closes the connection without a reply',
    todo: '"ssh -D" does so if it does not reach the mail server: port {port} is probably blocked where the proxy runs; run "ev doctor" there. Otherwise check that --proxy names a SOCKS5 proxy.',
  },
  EPROXYDOWN: {
    why: 'no proxy responds',
    todo: 'Check the host and the port in --proxy, that the proxy runs, and that this machine reaches it.',
  },
}

const labelOf = (outcome: Outcome): string => LABELS[outcome.kind]

const LABELS = {
  greeted: 'accepted',
  refused: 'rejected the connection',
  mute: 'no SMTP response',
  unreached: 'not reached',
  unresolved: 'not found in the DNS',
  'not-public': 'not a public address',
} as const satisfies Record<Outcome['kind'], string>
