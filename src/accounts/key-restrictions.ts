import { isFault } from '../engine/address/address.ts'
import { parseDomain } from '../engine/address/domain.ts'
import { inRanges, isIpRange, plainIp } from '../platform/ip.ts'

/** Entries that a restriction may have: enough for every office and every site of a company. */
export const RESTRICTIONS_MAX = 100

/** Whether a key may be used from this address. */
export function ipAllowed(
  { allowedIps }: { readonly allowedIps: readonly string[] },
  ip: string,
): boolean {
  if (allowedIps.length === 0) return true
  const plain = plainIp(ip)
  return plain !== null && inRanges(allowedIps)(plain)
}

/**
 * Whether a key may be used by this web site: `origin` is what a browser says of itself in Origin, or else in
 * Referer. Who says nothing is no browser on an allowed site. It keeps honest browsers apart and stops nobody
 * who writes the header by hand; that is what allowed addresses are for.
 */
export function domainAllowed(
  { allowedDomains }: { readonly allowedDomains: readonly string[] },
  origin: string | null,
): boolean {
  if (allowedDomains.length === 0) return true
  const host = origin === null ? null : hostOf(origin)
  return host !== null && allowedDomains.some(one => domainWithin(one, host))
}

/** Whether `name` is the domain `outer` or one of its subdomains. */
export const domainWithin = (outer: string, name: string) =>
  name === outer || name.endsWith(`.${outer}`)

/** An entry of allowed addresses as it is kept; null: it is neither an IP address nor a CIDR. */
export function readAllowedIp(text: string): string | null {
  const trimmed = text.trim()
  return isIpRange(trimmed) ? trimmed.toLowerCase() : null
}

/** An entry of allowed web sites as it is kept, in A-labels; null: it is no domain. */
export function readAllowedDomain(text: string): string | null {
  const name = text.trim().toLowerCase()
  if (name === 'localhost') return name
  const domain = parseDomain(name)
  return isFault(domain) || domain.kind === 'literal' ? null : domain.ascii
}

function hostOf(origin: string): string | null {
  if (!/^https?:\/\//i.test(origin) || !URL.canParse(origin)) return null
  return new URL(origin).hostname.replace(/\.$/, '')
}
