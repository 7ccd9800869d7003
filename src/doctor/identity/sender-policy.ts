import type { Resolver } from '../../engine/dns/resolver.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'
import { isIpv6 } from './ip.ts'
import { domainOf } from './mail-from.ts'
import { checkSpf, type SpfResult } from './spf.ts'

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
