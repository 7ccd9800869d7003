import { type Finding, ok, warn } from '../finding.ts'
import { isIpv6 } from '../identity/reverse-name.ts'
import type { HandshakeResult } from './smtp-handshake.ts'

/** Whether IPv6 serves too; null where none could be tried. It is no fault to have none, but one to have half of it. */
export function ipv6Finding(visits: readonly HandshakeResult[]): Finding | null {
  const tried = visits.filter(({ ip }) => ip !== null && isIpv6(ip))
  const called = tried.filter(({ outcome }) => outcome.kind !== 'not-public')
  if (called.length === 0) return null
  const speaking = called.filter(
    ({ outcome }) => outcome.kind === 'greeted' || outcome.kind === 'refused',
  )
  if (speaking.length > 0) {
    return ok(`${speaking.length} of ${called.length} mail servers speak to us over IPv6`)
  }
  const codes = called.map(({ outcome }) => (outcome.kind === 'unreached' ? outcome.code : ''))
  if (codes.every(code => NO_ROUTE.has(code))) {
    return ok('this machine has IPv4 only, which is enough for nearly all mail servers')
  }
  return warn(
    'this machine has an IPv6 route, but no mail server answers over it; servers that have nothing else cost their whole timeout',
    'Open the port for IPv6 too, or take the IPv6 route off this machine; or dial from an IPv4 address with --source-address.',
  )
}

const NO_ROUTE: ReadonlySet<string> = new Set(['ENETUNREACH', 'EADDRNOTAVAIL', 'EAFNOSUPPORT'])
