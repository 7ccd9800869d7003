import type { Reply } from '../../engine/smtp/reply.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import { parseIp } from '../identity/reverse-name.ts'
import type { HandshakeResult, Outcome } from './smtp-handshake.ts'

/** Whether mail servers can be reached, and if not, where the way is closed. */
export function portFinding(
  visits: readonly HandshakeResult[],
  port: number,
  proxied: boolean,
): Finding {
  const best = [...Map.groupBy(visits, ({ host }) => host).values()].map(bestOf)
  const greeted = best.filter(is('greeted'))
  const refused = best.filter(is('refused'))
  if (greeted.length + refused.length === 0) return closed(best, port, proxied)
  const count = `${greeted.length} of ${best.length} mail servers`
  if (refused.length > 0) return rejected(`${count} greeted us on port ${port}`, greeted, refused)
  const others = best.filter(handshake => handshake.outcome.kind !== 'greeted')
  const names = greeted.map(({ host }) => host).join(', ')
  const says = `${count} greeted us on port ${port}: ${names}`
  if (others.length === 0) return ok(says)
  const missing = others.map(({ host, outcome }) => `${host} (${wordOf(outcome)})`).join(', ')
  if (others.length <= greeted.length) return ok(`${says}; not ${missing}`)
  return warn(
    `${says}; not ${missing}`,
    'Look at the names above: if most are not found, see to the DNS; if they keep silent, ask your hoster whether it limits mail.',
  )
}

type With<K extends Outcome['kind']> = HandshakeResult & {
  readonly outcome: Extract<Outcome, { kind: K }>
}

const is =
  <K extends Outcome['kind']>(kind: K) =>
  (handshake: HandshakeResult): handshake is With<K> =>
    handshake.outcome.kind === kind

/** From the best news to the worst. */
const ORDER: readonly Outcome['kind'][] = [
  'greeted',
  'refused',
  'mute',
  'unreached',
  'not-public',
  'unresolved',
]

const bestOf = (visits: readonly HandshakeResult[]): HandshakeResult =>
  visits.toSorted(
    (a, b) => ORDER.indexOf(a.outcome.kind) - ORDER.indexOf(b.outcome.kind),
  )[0] as HandshakeResult

function rejected(
  says: string,
  greeted: readonly HandshakeResult[],
  refused: readonly With<'refused'>[],
): Finding {
  const said = refused
    .map(({ host, outcome }) => `${host} said “${textOf(outcome.reply)}”`)
    .join('; ')
  const todo =
    'They refuse our address or our name, and may say why: mend what the lines below find of PTR, HELO and blocklists.'
  return greeted.length === 0
    ? fail(`${says}, others refuse us: ${said}`, todo)
    : warn(`${says}; ${said}`, todo)
}

const textOf = ({ code, enhanced, text }: Reply) =>
  sanitizeText(`${code} ${enhanced === null ? '' : `${enhanced} `}${text}`, REPLY_CHARACTERS_MAX)
/** Enough for what a refusal says first. */
const REPLY_CHARACTERS_MAX = 160

function closed(best: readonly HandshakeResult[], port: number, proxied: boolean): Finding {
  if (best.some(is('mute'))) {
    return fail(
      `connections to port ${port} open, but no mail server speaks on them`,
      'A firewall or proxy between takes them: ask your network or hoster to let outbound mail pass untouched.',
    )
  }
  const dialled = best.filter(is('unreached'))
  const [first] = dialled
  if (first === undefined) return noHostFound(best)
  const names = dialled.map(({ host }) => host).join(', ')
  if (proxied) {
    return fail(
      `no mail server can be reached through the proxy (${sanitizeText(first.outcome.detail)}): ${names}`,
      `Check that the proxy runs, takes our log-in and lets connections to port ${port} pass.`,
    )
  }
  const { why, todo } = causeOf(dialled, port)
  return fail(`no mail server can be reached (${why}): ${names}`, todo)
}

function noHostFound(best: readonly HandshakeResult[]): Finding {
  const isPrivate = best.some(is('not-public'))
  return isPrivate
    ? fail(
        'the addresses of the mail servers are not public, so none was called',
        'The DNS gives addresses of your own network: ask another resolver with --dns, or let them be dialled with --allow-ranges.',
      )
    : fail(
        'none of the mail servers could be found in the DNS, so none was called',
        'See to the DNS first: name a working server with --dns.',
      )
}

/** Firewalls drop, reject or forbid; what happened to most is what is wrong. */
function causeOf(dialled: readonly With<'unreached'>[], port: number): Cause {
  const codes = dialled.map(({ outcome }) => outcome.code)
  const counts = [...Map.groupBy(codes, code => code)].sort(([, a], [, b]) => b.length - a.length)
  const [code = ''] = counts[0] ?? []
  const byAddress = dialled.some(({ host }) => parseIp(host) !== null)
  const cause = CAUSES[code] ?? {
    why: sanitizeText(dialled[0]?.outcome.detail ?? code),
    todo: BLOCKED,
  }
  const why = byAddress ? `${cause.why}, by name and by address` : cause.why
  return { why, todo: cause.todo.replaceAll('{port}', `${port}`) }
}

type Cause = { readonly why: string; readonly todo: string }

const BLOCKED =
  'Outbound port {port} is blocked, as most hosters do: ask yours to open it, or dial through --proxy socks5://… on a machine where it is open.'

const CAUSES: Readonly<Record<string, Cause>> = {
  ETIMEDOUT: { why: 'nobody answers', todo: BLOCKED },
  ECONNREFUSED: {
    why: 'all connections are refused',
    todo: 'Unless all of them are down, a firewall of this machine or network rejects port {port}: open it there, ask your hoster, or dial through --proxy socks5://….',
  },
  EHOSTUNREACH: { why: 'a router says that there is no way', todo: BLOCKED },
  ENETUNREACH: {
    why: 'this machine has no route to the internet',
    todo: 'Give this machine, or the container that it runs in, a route to the internet.',
  },
  EACCES: {
    why: 'this machine forbids it',
    todo: 'A firewall or security policy of this machine forbids port {port}: allow it there.',
  },
  EPERM: {
    why: 'this machine forbids it',
    todo: 'A firewall or security policy of this machine forbids port {port}: allow it there.',
  },
  EADDRNOTAVAIL: {
    why: 'this machine does not have the source address',
    todo: 'Set --source-address to an address that this machine has (ip address shows them).',
  },
  EMFILE: { why: 'too many files are open', todo: 'Raise the limit of open files (ulimit -n).' },
}

const wordOf = (outcome: Outcome): string => WORDS[outcome.kind]

const WORDS = {
  greeted: 'greeted us',
  refused: 'refuses us',
  mute: 'does not speak',
  unreached: 'not reached',
  unresolved: 'not found in the DNS',
  'not-public': 'not at a public address',
} as const satisfies Record<Outcome['kind'], string>
