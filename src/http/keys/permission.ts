import { type KeyRights, rightsBeyond } from '../../account/key-rights.ts'
import { permits } from '../../account/scope.ts'
import type { Caller } from '../context.ts'
import { ApiError } from '../error/api-error.ts'

/**
 * A key creates, changes, rotates and deletes only keys that have no right beyond its own, itself included: else it
 * could give itself more than it has. Throws `insufficient_scope` and names what is beyond.
 */
export function refuseBeyond(caller: Caller, key: KeyRights): void {
  const own = ownRights(caller)
  const beyond = rightsBeyond(key, own)
  if (beyond.length === 0) return
  const names = beyond.map(right =>
    right === 'scopes' ? `scopes (${lacking(key, own)})` : FIELDS[right],
  )
  throw new ApiError(
    'insufficient_scope',
    `This API key cannot manage a key that has more rights than itself: ${names.join(', ')}`,
  )
}

/** A text that was replaced by rotation has the rights of its key until the end of its grace period. */
export function ownRights({ key, secretExpiresAt }: Caller): KeyRights {
  if (secretExpiresAt === null) return key
  return { ...key, expiresAt: Math.min(secretExpiresAt, key.expiresAt ?? secretExpiresAt) }
}

const lacking = (key: KeyRights, own: KeyRights) =>
  key.scopes.filter(scope => !permits(own.scopes, scope)).join(', ')

/** How the API names them. */
const FIELDS = {
  allowedIps: 'allowed_ips',
  allowedDomains: 'allowed_domains',
  rateLimitPerMinute: 'rate_limit_per_minute',
  expiresAt: 'expires_at',
} as const
