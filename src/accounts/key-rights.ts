import { containsRange } from '../platform/ip.ts'
import { domainWithin } from './key-restrictions.ts'
import { FORM_SCOPE, permits, type Scope } from './scope.ts'

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

/** The scopes of a publishable key. A key has either these or scopes of secret keys. */
export const PUBLISHABLE_SCOPES = [FORM_SCOPE] as const

/** Whether a key is publishable: web pages contain it, so it only verifies addresses of forms. */
export const isPublishable = ({ scopes }: Pick<KeyRights, 'scopes'>): boolean =>
  scopes.includes(FORM_SCOPE)

/** Returns the rights of `key` that exceed those of `limit`; empty if there are none. */
export function exceedingRights(key: KeyRights, limit: KeyRights): (keyof KeyRights)[] {
  const isWithin: Record<keyof Required<KeyRights>, boolean> = {
    scopes: key.scopes.every(scope => permits(limit.scopes, scope)),
    allowedIps: isNarrowerList(key.allowedIps, limit.allowedIps, containsRange),
    allowedDomains: isNarrowerList(key.allowedDomains, limit.allowedDomains, domainWithin),
    rateLimitPerMinute: isAtMost(key.rateLimitPerMinute, limit.rateLimitPerMinute),
    expiresAt: isAtMost(key.expiresAt, limit.expiresAt),
    isTest: key.isTest === true || limit.isTest !== true,
  }
  return RIGHTS.filter(right => !isWithin[right])
}

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
