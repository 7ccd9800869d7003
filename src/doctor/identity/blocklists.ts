import type { DnsAnswer, Resolver } from '../../engine/dns/resolver.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import { isIpv6, reversed } from './reverse-name.ts'

/** Asks the usual blocklists for our address: one finding for each that lists it, and one for the others. */
export async function onBlocklists(
  resolver: Resolver,
  ip: string,
  signal: AbortSignal,
): Promise<Finding[]> {
  const lists = BLOCKLISTS.filter(({ ipv6 }) => ipv6 || !isIpv6(ip))
  const entries = await Promise.all(
    lists.map(async list => [list, await lookUp(resolver, list, ip, signal)] as const),
  )
  const titles = (what: Entry['kind']) =>
    entries.filter(([, { kind }]) => kind === what).map(([{ title }]) => title)
  return [
    ...entries.flatMap(([list, entry]) =>
      entry.kind === 'listed' ? [listing(list, ip, entry)] : [],
    ),
    ...deaf(titles('deaf')),
    ...clean(ip, titles('clean')),
  ]
}

type Entry =
  | { readonly kind: 'clean' }
  | { readonly kind: 'listed'; readonly codes: readonly string[]; readonly reason: string | null }
  /** It gives us no answers that mean anything. */
  | { readonly kind: 'deaf' }

/** RFC 5782 §5: lists everywhere have this entry, so that one can see whether they answer. */
const LISTED_EVERYWHERE = '2.0.0.127'
/** And nowhere this one: a list that has been shut down may list the world. */
const LISTED_NOWHERE = '1.0.0.127'

async function lookUp(
  resolver: Resolver,
  { zone }: Blocklist,
  ip: string,
  signal: AbortSignal,
): Promise<Entry> {
  const name = `${reversed(ip)}.${zone}`
  const ask = (entry: string) => resolver.resolve(`${entry}.${zone}`, 'A', signal)
  const [present, absent, ours] = await Promise.all([
    ask(LISTED_EVERYWHERE),
    ask(LISTED_NOWHERE),
    resolver.resolve(name, 'A', signal),
  ])
  if (codesOf(present).length === 0 || 'records' in absent || !isAnswer(ours))
    return { kind: 'deaf' }
  const codes = codesOf(ours)
  if (codes.length === 0) return { kind: 'clean' }
  const said = await resolver.resolve(name, 'TXT', signal)
  return { kind: 'listed', codes, reason: 'records' in said ? (said.records[0] ?? null) : null }
}

/** RFC 5782 §2.1: an entry is an address in 127/8; 127.255.255.0/24 tells of trouble, such as a public resolver that asks. */
const codesOf = (answer: DnsAnswer<'A'>): string[] =>
  'records' in answer
    ? answer.records.filter(code => code.startsWith('127.') && !code.startsWith('127.255.255.'))
    : []

const isAnswer = (answer: DnsAnswer<'A'>) =>
  'records' in answer
    ? codesOf(answer).length > 0
    : answer.fault === 'no-name' || answer.fault === 'no-data'

function listing(
  { title, zone, weight, remedy }: Blocklist,
  ip: string,
  { codes, reason }: Extract<Entry, { kind: 'listed' }>,
): Finding {
  const meant =
    zone === 'zen.spamhaus.org'
      ? SPAMHAUS_CODES.find(([pattern]) => codes.some(code => pattern.test(code)))
      : undefined
  const why = [meant?.[1], reason === null ? undefined : `“${sanitizeText(reason)}”`]
    .filter(text => text !== undefined)
    .join('; ')
  const says = `${ip} is on the list of ${title} (${codes.join(', ')})${why === '' ? '' : `: ${why}`}`
  return (weight === 'fail' ? fail : warn)(says, meant?.[2] ?? remedy)
}

const deaf = (titles: readonly string[]): Finding[] =>
  titles.length === 0
    ? []
    : [
        warn(
          `no useful answer from ${titles.join(', ')}: whether we are listed there is not known`,
          'Blocklists do not answer public resolvers, and Barracuda answers only those that are registered with it. Run a resolver of your own, such as unbound, and name it with --dns.',
        ),
      ]

const clean = (ip: string, titles: readonly string[]): Finding[] =>
  titles.length === 0 ? [] : [ok(`${ip} is not on the lists of ${titles.join(', ')}`)]

/** A DNS blocklist that mail servers ask (RFC 5782). */
type Blocklist = {
  readonly title: string
  readonly zone: string
  /** Whether it lists IPv6 addresses. */
  readonly ipv6: boolean
  /** How heavy a listing weighs: few large providers ask those that only warn. */
  readonly weight: 'fail' | 'warn'
  /** How to get off it. */
  readonly remedy: string
}

export const BLOCKLISTS: readonly Blocklist[] = [
  {
    title: 'Spamhaus',
    zone: 'zen.spamhaus.org',
    ipv6: true,
    weight: 'fail',
    remedy: 'Find the reason and ask for removal at https://check.spamhaus.org.',
  },
  {
    title: 'SpamCop',
    zone: 'bl.spamcop.net',
    ipv6: false,
    weight: 'fail',
    remedy:
      'It forgets a listing within a day once nothing more is reported: https://www.spamcop.net/bl.shtml.',
  },
  {
    title: 'Barracuda',
    zone: 'b.barracudacentral.org',
    ipv6: false,
    weight: 'fail',
    remedy: 'Ask for removal at https://www.barracudacentral.org/rbl/removal-request.',
  },
  {
    title: 'PSBL',
    zone: 'psbl.surriel.com',
    ipv6: false,
    weight: 'warn',
    remedy: 'Remove it yourself at https://psbl.org.',
  },
  {
    title: 'Mailspike',
    zone: 'bl.mailspike.net',
    ipv6: false,
    weight: 'warn',
    remedy: 'Look up the reason at https://www.mailspike.io/ip_verify.',
  },
]

/** What Spamhaus means by its answers, as far as the remedy depends on it. */
const SPAMHAUS_CODES: readonly [pattern: RegExp, means: string, remedy: string | null][] = [
  [
    /^127\.0\.0\.1[01]$/,
    'PBL: a range whose owner says that it sends no mail to others’ servers',
    'If the address is fixed and yours, ask your hoster for a PTR record and take it off the PBL at https://check.spamhaus.org; else send from another address, or through --proxy.',
  ],
  [/^127\.0\.0\.2$/, 'SBL: seen as a source of spam', null],
  [/^127\.0\.0\.3$/, 'CSS: mail of poor repute came from it', null],
  [
    /^127\.0\.0\.[4-7]$/,
    'XBL: a machine behind it seems to be infected or hijacked',
    'Find and clean the machine behind this address first, then ask for removal at https://check.spamhaus.org.',
  ],
  [/^127\.0\.0\.9$/, 'DROP: a network held by criminals', 'Use an address of another hoster.'],
]
