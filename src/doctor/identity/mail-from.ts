import type { Resolver } from '../../engine/dns/resolver.ts'
import { findRoute } from '../../engine/dns/route.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'

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

export const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)
