import { isFault } from '../engine/address/address.ts'
import { parseDomain } from '../engine/address/domain.ts'
import { inRanges, isIpRange, plainIp } from '../platform/ip.ts'

/** Maximum entries of a restriction: enough for all offices and all sites of a company. */
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
 * Whether a key may be used by this website. `origin` is the Origin header of the request, or else
 * its Referer; a request with neither does not come from a browser on an allowed site. The check
 * keeps other sites from using a key in browsers. It does not stop a client that sets the header
 * itself; allowed IP addresses do.
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

/**
 * Parses an entry of `allowedIps` into the form that is stored. Returns null if it is neither an IP
 * address nor a CIDR.
 */
export function readAllowedIp(text: string): string | null {
  const trimmed = text.trim()
  return isIpRange(trimmed) ? trimmed.toLowerCase() : null
}

/**
 * Parses an entry of `allowedDomains` into the form that is stored, in A-labels. Returns null if it
 * is not a domain.
 */
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
