import type { DNSResolver } from 'mailauth'
import type {
  DnsAnswer,
  DnsFault,
  MxRecord,
  RecordType,
  Resolver,
} from '../../engine/dns/resolver.ts'
import { findRoute } from '../../engine/dns/route.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import { isIpv6 } from './reverse-name.ts'

/**
 * Checks that the SPF record of the sender covers the IP address. The null sender is checked by the
 * HELO name (RFC 7208 §2.4).
 */
export async function senderPolicy(
  resolver: Resolver,
  { ip, helo, mailFrom }: { ip: string; helo: string; mailFrom: string },
  signal: AbortSignal,
): Promise<Finding> {
  const domain = mailFrom === '' ? helo : domainOf(mailFrom)
  const sender = mailFrom === '' ? `postmaster@${helo}` : mailFrom
  if (domain.startsWith('['))
    return ok('SPF does not apply: the HELO name is an address literal and the sender is null')
  const spf = await checkSpf(resolver, { ip, sender, helo }, signal)
  // HELO names rarely have an SPF record, and servers do not require one.
  if (spf.result === 'none' && mailFrom === '')
    return ok(`${domain} has no SPF record; none is required`)
  return toFinding(spf, domain, ip)
}

function toFinding({ result, record, fault }: SpfResult, domain: string, ip: string): Finding {
  const network = `${isIpv6(ip) ? 'ip6' : 'ip4'}:${ip}`
  const add = `Add ${network} to the SPF record of ${domain}${record === null ? '' : `, currently "${sanitizeText(record)}"`}.`
  switch (result) {
    case 'pass':
      return ok(`SPF of ${domain} allows ${ip}`)
    case 'fail':
      return fail(`SPF of ${domain} forbids ${ip}; servers reject the sender`, add)
    case 'softfail':
    case 'neutral':
      return warn(`SPF of ${domain} does not cover ${ip} (${result})`, add)
    case 'none':
      return warn(
        `${domain} has no SPF record`,
        `Publish a TXT record for ${domain}, such as "v=spf1 mx ${network} -all".`,
      )
    case 'temperror':
      return warn(`SPF of ${domain} could not be looked up: ${fault}`, 'Run this again.')
    case 'permerror':
      return fail(
        `SPF of ${domain} is invalid: ${sanitizeText(fault ?? '')}`,
        `Fix the SPF record of ${domain}${record === null ? '' : `, currently "${sanitizeText(record)}"`}.`,
      )
    default:
      return result satisfies never
  }
}

/** Result of an SPF check (RFC 7208 §2.6). */
type SpfResult = {
  readonly result: 'pass' | 'fail' | 'softfail' | 'neutral' | 'none' | 'temperror' | 'permerror'
  /** The SPF record of the domain; null if there is none. */
  readonly record: string | null
  /** The error text of `temperror` and `permerror`; null otherwise. */
  readonly fault: string | null
}

type SpfQuestion = { readonly ip: string; readonly sender: string; readonly helo: string }

/** Evaluates the SPF policy of the sender (`check_host` of RFC 7208 §4). */
export async function checkSpf(
  resolver: Resolver,
  question: SpfQuestion,
  signal: AbortSignal,
): Promise<SpfResult> {
  // Loaded lazily: the library includes a message parser.
  const { spf } = await import('mailauth/lib/spf/index.js')
  const { status, rr } = await spf({
    ...question,
    mta: question.helo,
    strict: true,
    resolver: ((name, type) => ask(resolver, name, type, signal)) as DNSResolver,
  })
  const isError = status.result === 'temperror' || status.result === 'permerror'
  return {
    result: status.result as SpfResult['result'],
    record: rr ?? null,
    fault: isError ? faultIn(status.comment || '') : null,
  }
}

/** Adapts the resolver to the API of node:dns, which the library expects. */
async function ask(resolver: Resolver, name: string, type: string, signal: AbortSignal) {
  const answer = await resolver.resolve(name, type as RecordType, signal)
  if ('fault' in answer)
    throw Object.assign(new Error(`${name}: ${FAULT_TEXTS[answer.fault]}`), {
      code: CODES[answer.fault],
    })
  return toNodeRecords(type, answer)
}

function toNodeRecords(
  type: string,
  { records }: Extract<DnsAnswer<RecordType>, { records: unknown }>,
) {
  if (type === 'TXT') return records.map(text => [text])
  if (type !== 'MX') return [...records]
  return (records as readonly MxRecord[]).map(({ preference, host }) => ({
    priority: preference,
    exchange: host,
  }))
}

const CODES: Readonly<Record<DnsFault, string>> = {
  'no-name': 'ENOTFOUND',
  'no-data': 'ENODATA',
  server: 'ESERVFAIL',
  timeout: 'ETIMEOUT',
}
const FAULT_TEXTS: Readonly<Record<DnsFault, string>> = {
  'no-name': 'the name does not exist',
  'no-data': 'the record does not exist',
  server: 'its DNS servers failed',
  timeout: 'the DNS lookup timed out',
}

/**
 * Extracts the error from the comment: "probe.test: permanent error during lookup of a@b: ERROR".
 */
const faultIn = (comment: string) => comment.replace(/^.*? during lookup of [^:]*: /, '')

/** Checks that the domain of the sender accepts mail, as bounces require (RFC 5321 §3.6.2). */
export async function mailFrom(
  resolver: Resolver,
  sender: string,
  signal: AbortSignal,
): Promise<Finding> {
  if (sender === '') {
    return ok('<>, the null sender; a real mailbox with SPF (--mail-from) is rejected less often')
  }
  const domain = domainOf(sender)
  const route = await findRoute(resolver, domain, signal)
  switch (route.kind) {
    case 'mx':
      return ok(`${sender}: ${domain} accepts mail at ${route.hosts[0]?.host}`)
    case 'implicit':
      return ok(`${sender}: ${domain} accepts mail itself, without an MX record`)
    case 'unknown':
      return warn(
        `${sender}: the DNS lookup of ${domain} failed`,
        'Run this again. If it keeps failing, fix the DNS of that domain or set another sender with --mail-from.',
      )
    default:
      return fail(
        `${sender}: ${domain} ${WHY[route.kind]}; servers reject such senders`,
        `Set a sender at a domain that accepts mail with --mail-from, or add an MX record to ${domain}.`,
      )
  }
}

const WHY = {
  'no-domain': 'does not exist',
  'no-mail': 'has no mail server',
  'null-mx': 'does not accept mail (null MX)',
} as const

const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)
