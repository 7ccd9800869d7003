import type { KeyRights } from '../../accounts/key-rights.ts'
import type { Caller } from '../context.ts'

/**
 * Rights that the calling key can grant. A secret that was replaced by rotation has the rights of
 * its key until its grace period ends.
 */
export function ownRights({ key, secretExpiresAt }: Caller): KeyRights {
  if (secretExpiresAt === null) return key
  return { ...key, expiresAt: Math.min(secretExpiresAt, key.expiresAt ?? secretExpiresAt) }
}
