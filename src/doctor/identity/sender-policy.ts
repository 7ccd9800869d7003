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

/** Whether the SPF record of our sender covers our address; for the null sender that of the HELO name counts (RFC 7208 §2.4). */
export async function senderPolicy(
  resolver: Resolver,
  { ip, helo, mailFrom }: { ip: string; helo: string; mailFrom: string },
  signal: AbortSignal,
): Promise<Finding> {
  const domain = mailFrom === '' ? helo : domainOf(mailFrom)
  const sender = mailFrom === '' ? `postmaster@${helo}` : mailFrom
  if (domain.startsWith('[')) return ok('an address as HELO and no sender: SPF does not apply')
  const spf = await checkSpf(resolver, { ip, sender, helo }, signal)
  // Names that only say HELO rarely have a record, and nobody asks for one.
  if (spf.result === 'none' && mailFrom === '')
    return ok(`${domain} has no SPF record, and needs none`)
  return toFinding(spf, domain, ip)
}

function toFinding({ result, record, fault }: SpfResult, domain: string, ip: string): Finding {
  const network = `${isIpv6(ip) ? 'ip6' : 'ip4'}:${ip}`
  const add = `Add ${network} to the SPF record of ${domain}${record === null ? '' : `, which now is “${sanitizeText(record)}”`}.`
  switch (result) {
    case 'pass':
      return ok(`SPF of ${domain} lets ${ip} send`)
    case 'fail':
      return fail(`SPF of ${domain} forbids ${ip} to send; servers refuse that`, add)
    case 'softfail':
    case 'neutral':
      return warn(`SPF of ${domain} does not cover ${ip} (${result})`, add)
    case 'none':
      return warn(
        `${domain} has no SPF record`,
        `Publish a TXT record for ${domain}, such as “v=spf1 mx ${network} -all”.`,
      )
    case 'temperror':
      return warn(`SPF of ${domain} could not be read: ${fault}`, 'Run this again.')
    case 'permerror':
      return fail(
        `SPF of ${domain} is broken: ${sanitizeText(fault ?? '')}`,
        `Mend the SPF record of ${domain}${record === null ? '' : `, which now is “${sanitizeText(record)}”`}.`,
      )
    default:
      return result satisfies never
  }
}

/** What SPF says of a sender (RFC 7208 §2.6). */
type SpfResult = {
  readonly result: 'pass' | 'fail' | 'softfail' | 'neutral' | 'none' | 'temperror' | 'permerror'
  /** The record of the domain itself; null where there is none. */
  readonly record: string | null
  /** What is wrong, for the two errors. */
  readonly fault: string | null
}

type SpfQuestion = { readonly ip: string; readonly sender: string; readonly helo: string }

/** Whether the sender's domain lets this address send (check_host of RFC 7208 §4). */
export async function checkSpf(
  resolver: Resolver,
  question: SpfQuestion,
  signal: AbortSignal,
): Promise<SpfResult> {
  // Loaded where it is needed: it brings a parser of messages with it.
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

/** Our resolver in the manner of node:dns, which the library expects. */
async function ask(resolver: Resolver, name: string, type: string, signal: AbortSignal) {
  const answer = await resolver.resolve(name, type as RecordType, signal)
  if ('fault' in answer)
    throw Object.assign(new Error(`${name}: ${SAID[answer.fault]}`), { code: CODES[answer.fault] })
  return inItsManner(type, answer)
}

function inItsManner(
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
const SAID: Readonly<Record<DnsFault, string>> = {
  'no-name': 'there is no such name',
  'no-data': 'there is no such record',
  server: 'its DNS servers failed',
  timeout: 'the DNS did not answer',
}

/** The library says it as a header of a message would: "probe.test: permanent error in … of a@b: what is wrong". */
const faultIn = (comment: string) => comment.replace(/^.*? during lookup of [^:]*: /, '')

/** Whether our sender is one that servers accept: bounces to it must find a mail server (RFC 5321 §3.6.2). */
export async function mailFrom(
  resolver: Resolver,
  sender: string,
  signal: AbortSignal,
): Promise<Finding> {
  if (sender === '') {
    return ok('<>, the null sender; a real mailbox with SPF (--mail-from) is refused less often')
  }
  const domain = domainOf(sender)
  const route = await findRoute(resolver, domain, signal)
  switch (route.kind) {
    case 'mx':
      return ok(`${sender}: ${domain} takes mail at ${route.hosts[0]?.host}`)
    case 'implicit':
      return ok(`${sender}: ${domain} takes mail itself, without an MX record`)
    case 'unknown':
      return warn(
        `${sender}: the DNS could not tell whether ${domain} takes mail`,
        'Run this again; if it stays so, mend the DNS of that domain or set another sender with --mail-from.',
      )
    default:
      return fail(
        `${sender}: ${domain} ${WHY[route.kind]}; servers refuse such senders`,
        `Set with --mail-from a sender at a domain that takes mail, or give ${domain} an MX record.`,
      )
  }
}

const WHY = {
  'no-domain': 'does not exist',
  'no-mail': 'has no mail server',
  'null-mx': 'says that it takes no mail',
} as const

const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)
