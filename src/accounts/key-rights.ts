import { isFault } from '../engine/address/address.ts'
import { parseDomain } from '../engine/address/domain.ts'
import { containsRange, inRanges, isIpRange, plainIp } from '../platform/ip.ts'

/** The permissions that a secret key can have, as `resource:verb`; `*` grants all. */
export const SCOPES = [
  'verify:single',
  'verify:bulk',
  'jobs:read',
  'jobs:write',
  'webhooks:read',
  'webhooks:write',
  'feedback:read',
  'feedback:write',
  'account:read',
  'account:write',
  'audit:read',
  'keys:write',
  'people:write',
  'accounts:write',
  'dashboard',
  '*',
] as const

/** The only permission of a publishable key. */
export const FORM_SCOPE = 'verify:form'

export type SecretScope = (typeof SCOPES)[number]

export type Scope = SecretScope | typeof FORM_SCOPE

export const isSecretScope = (text: string): text is SecretScope =>
  (SCOPES as readonly string[]).includes(text)

/** Scopes of operations that change or show more than the sandbox: a test key cannot have them. */
const LIVE_SCOPES: readonly Scope[] = [
  'feedback:write',
  'account:write',
  'accounts:write',
  'people:write',
  'audit:read',
]

/** Whether a test key may be used for operations with this scope. */
export const isForTestKeys = (scope: Scope): boolean => !LIVE_SCOPES.includes(scope)

/** Whether a key with the scopes `held` has the permission `needed`. */
export const permits = (held: readonly Scope[], needed: Scope): boolean =>
  held.includes('*') ||
  held.includes(needed) ||
  // The answer for a form is a part of that of a single verification.
  (needed === FORM_SCOPE && held.includes('verify:single'))

/** Maximum of a key's own limit, in requests per minute: more than any plan allows. */
export const KEY_RATE_MAX = 100_000

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
const domainWithin = (outer: string, name: string) => name === outer || name.endsWith(`.${outer}`)

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

/** The scopes of a key and the restrictions that narrow them. */
export type KeyRights = {
  readonly scopes: readonly Scope[]
  /** Addresses and CIDRs; empty: any. */
  readonly allowedIps: readonly string[]
  /** Domains, each with its subdomains; empty: any. */
  readonly allowedDomains: readonly string[]
  /** Null if only the limit of the plan applies. */
  readonly rateLimitPerMinute: number | null
  /** Epoch ms; null if it does not expire. */
  readonly expiresAt: number | null
  /** Whether all its requests are in the sandbox. Default: false. */
  readonly isTest?: boolean
}

/** The rights of a key without restrictions, beside its scopes. */
export const UNRESTRICTED: Omit<KeyRights, 'scopes'> = {
  allowedIps: [],
  allowedDomains: [],
  rateLimitPerMinute: null,
  expiresAt: null,
}

/** The scopes of a publishable key. A key has either these or scopes of secret keys. */
export const PUBLISHABLE_SCOPES = [FORM_SCOPE] as const

/** Whether a key is publishable: web pages contain it, so it only verifies addresses of forms. */
export const isPublishable = ({ scopes }: Pick<KeyRights, 'scopes'>): boolean =>
  scopes.includes(FORM_SCOPE)

/** Returns the rights of `key` that exceed those of `limit`; empty if there are none. */
export function exceedingRights(key: KeyRights, limit: KeyRights): Right[] {
  const isWithin: Record<Right, boolean> = {
    scopes: key.scopes.every(scope => permits(limit.scopes, scope)),
    allowedIps: isNarrowerList(key.allowedIps, limit.allowedIps, containsRange),
    allowedDomains: isNarrowerList(key.allowedDomains, limit.allowedDomains, domainWithin),
    rateLimitPerMinute: isAtMost(key.rateLimitPerMinute, limit.rateLimitPerMinute),
    expiresAt: isAtMost(key.expiresAt, limit.expiresAt),
    isTest: key.isTest === true || limit.isTest !== true,
  }
  return RIGHTS.filter(right => !isWithin[right])
}

export type Right = (typeof RIGHTS)[number]

const RIGHTS = [
  'scopes',
  'allowedIps',
  'allowedDomains',
  'rateLimitPerMinute',
  'expiresAt',
  'isTest',
] as const satisfies readonly (keyof KeyRights)[]

/** An empty list restricts nothing. */
const isNarrowerList = (
  entries: readonly string[],
  limit: readonly string[],
  contains: (outer: string, inner: string) => boolean,
) =>
  limit.length === 0 ||
  (entries.length > 0 && entries.every(entry => limit.some(outer => contains(outer, entry))))

const isAtMost = (value: number | null, limit: number | null) =>
  limit === null || (value !== null && value <= limit)

/** Whether a key or a secret that expires `at`, epoch ms, has expired; null: never. */
export const isExpired = (at: number | null, now: number): boolean => at !== null && at <= now
