import type { DnsAnswer, Resolver } from '../../engine/dns/resolver.ts'
import { isIpv6 } from '../../platform/ip.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import { reverseIp } from './reverse-name.ts'

/**
 * Looks up an IP address in common blocklists; returns a finding per listing and one for the rest.
 */
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
    ...unavailable(titles('unavailable')),
    ...clean(ip, titles('clean')),
  ]
}

type Entry =
  | { readonly kind: 'clean' }
  | { readonly kind: 'listed'; readonly codes: readonly string[]; readonly reason: string | null }
  /** The list does not give usable answers. */
  | { readonly kind: 'unavailable' }

/** Test entry that every blocklist contains (RFC 5782 §5). */
const TEST_LISTED = '2.0.0.127'
/** Test entry that no blocklist contains; a list that was shut down may list every address. */
const TEST_UNLISTED = '1.0.0.127'

async function lookUp(
  resolver: Resolver,
  { zone }: Blocklist,
  ip: string,
  signal: AbortSignal,
): Promise<Entry> {
  const name = `${reverseIp(ip)}.${zone}`
  const ask = (entry: string) => resolver.resolve(`${entry}.${zone}`, 'A', signal)
  const [present, absent, ours] = await Promise.all([
    ask(TEST_LISTED),
    ask(TEST_UNLISTED),
    resolver.resolve(name, 'A', signal),
  ])
  if (codesOf(present).length === 0 || 'records' in absent || !isAnswer(ours))
    return { kind: 'unavailable' }
  const codes = codesOf(ours)
  if (codes.length === 0) return { kind: 'clean' }
  const text = await resolver.resolve(name, 'TXT', signal)
  return { kind: 'listed', codes, reason: 'records' in text ? (text.records[0] ?? null) : null }
}

/**
 * Entries are addresses in 127/8 (RFC 5782 §2.1). 127.255.255.0/24 signals an error, such as a
 * query from a public resolver.
 */
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
  const known =
    zone === 'zen.spamhaus.org'
      ? SPAMHAUS_CODES.find(([pattern]) => codes.some(code => pattern.test(code)))
      : undefined
  const why = [known?.[1], reason === null ? undefined : `"${sanitizeText(reason)}"`]
    .filter(text => text !== undefined)
    .join('; ')
  const says = `${ip} is listed by ${title} (${codes.join(', ')})${why === '' ? '' : `: ${why}`}`
  return (weight === 'fail' ? fail : warn)(says, known?.[2] ?? remedy)
}

const unavailable = (titles: readonly string[]): Finding[] =>
  titles.length === 0
    ? []
    : [
        warn(
          `no usable answer from ${titles.join(', ')}: listing unknown`,
          'Blocklists do not answer public resolvers, and Barracuda answers only registered ones. Run your own resolver, such as unbound, and set it with --dns.',
        ),
      ]

const clean = (ip: string, titles: readonly string[]): Finding[] =>
  titles.length === 0 ? [] : [ok(`${ip} is not listed by ${titles.join(', ')}`)]

/** A DNS blocklist used by mail servers (RFC 5782). */
type Blocklist = {
  readonly title: string
  readonly zone: string
  /** Whether the list contains IPv6 addresses. */
  readonly ipv6: boolean
  /** Severity of a listing: few large providers use the lists that only warn. */
  readonly weight: 'fail' | 'warn'
  /** How to request removal. */
  readonly remedy: string
}

export const BLOCKLISTS: readonly Blocklist[] = [
  {
    title: 'Spamhaus',
    zone: 'zen.spamhaus.org',
    ipv6: true,
    weight: 'fail',
    remedy: 'Look up the reason and request removal at https://check.spamhaus.org.',
  },
  {
    title: 'SpamCop',
    zone: 'bl.spamcop.net',
    ipv6: false,
    weight: 'fail',
    remedy: 'Listings expire within a day after the last report: https://www.spamcop.net/bl.shtml.',
  },
  {
    title: 'Barracuda',
    zone: 'b.barracudacentral.org',
    ipv6: false,
    weight: 'fail',
    remedy: 'Request removal at https://www.barracudacentral.org/rbl/removal-request.',
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

/** Spamhaus return codes with their meaning, and a specific remedy where there is one. */
const SPAMHAUS_CODES: readonly [pattern: RegExp, means: string, remedy: string | null][] = [
  [
    /^127\.0\.0\.1[01]$/,
    'PBL: an address range that its owner declares not to send mail directly',
    'If the address is static and yours, ask your hosting provider for a PTR record and remove it from the PBL at https://check.spamhaus.org. Otherwise use another address, or --proxy.',
  ],
  [/^127\.0\.0\.2$/, 'SBL: known source of spam', null],
  [/^127\.0\.0\.3$/, 'CSS: sent mail with a poor reputation', null],
  [
    /^127\.0\.0\.[4-7]$/,
    'XBL: a machine behind it appears to be infected or compromised',
    'Find and clean the machine behind this address first, then request removal at https://check.spamhaus.org.',
  ],
  [
    /^127\.0\.0\.9$/,
    'DROP: a network controlled by criminals',
    'Use an address of another hosting provider.',
  ],
]
