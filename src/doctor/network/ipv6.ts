import { type Finding, ok, warn } from '../finding.ts'
import { isIpv6 } from '../identity/reverse-name.ts'
import type { HandshakeResult } from './smtp-handshake.ts'

/**
 * Checks IPv6 connectivity; null if no mail server has an IPv6 address. No IPv6 is fine; a route
 * that does not work is a warning.
 */
export function ipv6Finding(handshakes: readonly HandshakeResult[]): Finding | null {
  const tried = handshakes.filter(({ ip }) => ip !== null && isIpv6(ip))
  const dialed = tried.filter(({ outcome }) => outcome.kind !== 'not-public')
  if (dialed.length === 0) return null
  const responding = dialed.filter(
    ({ outcome }) => outcome.kind === 'greeted' || outcome.kind === 'refused',
  )
  if (responding.length > 0) {
    return ok(`${responding.length} of ${dialed.length} mail servers respond over IPv6`)
  }
  const codes = dialed.map(({ outcome }) => (outcome.kind === 'unreached' ? outcome.code : ''))
  if (codes.every(code => NO_ROUTE.has(code))) {
    return ok('this machine has only IPv4, which is enough for nearly all mail servers')
  }
  return warn(
    'this machine has an IPv6 route, but no mail server responds over it; connections to IPv6-only servers time out',
    'Open the port for IPv6, remove the IPv6 route, or set an IPv4 address with --source-address.',
  )
}

const NO_ROUTE: ReadonlySet<string> = new Set(['ENETUNREACH', 'EADDRNOTAVAIL', 'EAFNOSUPPORT'])
