import type { Resolver } from '../../engine/dns/resolver.ts'
import { findRoute } from '../../engine/dns/route.ts'
import { isIpv6 } from '../../platform/ip.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import { checkSpf, type SpfResult } from './spf.ts'

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
