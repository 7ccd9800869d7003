import type { Context } from 'hono'
import { isExpired } from '../../accounts/key-rights.ts'
import { findPrincipal, type Principal } from '../../accounts/people/principal.ts'
import { isSignedLink } from '../../accounts/signed-link.ts'
import { SECOND } from '../../platform/clock.ts'
import type { Env } from '../context.ts'
import { requestError } from '../errors/request-errors.ts'
import type { ServiceDeps } from '../service.ts'

export type LinkDeps = Pick<ServiceDeps, 'clock' | 'database' | 'secretBox'>

/**
 * Authenticates a signed link. The key or person is read at each request: a link ends when its key
 * is revoked, rotated or expired, or its person is removed. Throws ApiError.
 */
export async function authenticateLink(c: Context<Env>, service: LinkDeps): Promise<Principal> {
  const { pathname, search } = new URL(c.req.url)
  const found = await findPrincipal(service.database, c.req.query('key_id') ?? '')
  if (found === null || !isSignedLink(service, found.key, `${pathname}${search}`)) {
    throw requestError('link_invalid')
  }
  const now = service.clock.now()
  const expiresAt = Number(c.req.query('expires')) * SECOND
  if (!(now < expiresAt) || isExpired(found.key.expiresAt, now)) {
    throw requestError('link_expired')
  }
  return found
}
