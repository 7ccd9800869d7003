import type { Context } from 'hono'
import { findPrincipal, type Principal } from '../../accounts/people/principal.ts'
import { isSignedLink } from '../../accounts/signed-link.ts'
import { SECOND } from '../../platform/clock.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
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
    throw invalidLink()
  }
  const now = service.clock.now()
  const expiresAt = Number(c.req.query('expires')) * SECOND
  if (!(now < expiresAt) || (found.key.expiresAt !== null && found.key.expiresAt <= now)) {
    throw new ApiError('key_expired', 'This link has expired. Create a new one.')
  }
  return found
}

const invalidLink = () =>
  new ApiError(
    'authentication_error',
    'This link is not valid: it was changed, or its API key was rotated or revoked. Create a new one.',
  )
