import { hashSecret, isWellFormed } from '../../accounts/key.ts'
import { getCachedKey } from '../../accounts/key-cache.ts'
import { type FoundKey, findKeyById, isRevoked } from '../../accounts/key-store.ts'
import { findPlan } from '../../accounts/plan.ts'
import { permits } from '../../accounts/scope.ts'
import type { AskingSession, Caller } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'

/** Who asks, by the key in `Authorization: Bearer …`. Only who has the text of a key is told that it expired or was revoked. */
export async function authenticate(
  service: Service,
  authorization: string | undefined,
): Promise<Caller> {
  const text = BEARER.exec(authorization ?? '')?.[1]
  // A key that is mistyped or made up is told without asking the database.
  if (text === undefined || !isWellFormed(text)) throw unauthenticated()
  const { database, clock } = service
  const hash = hashSecret(text)
  const found = await getCachedKey(database, hash)
  if (found === null) throw (await isRevoked(database, hash)) ? revoked() : unauthenticated()
  const now = clock.now()
  if (isDone(found.key.expiresAt, now) || isDone(found.secretExpiresAt, now)) throw expired()
  return callerOf(service, found)
}

/**
 * Who asks, by the key of a session of the dashboard, which knows whose it is. Each time the key is looked up anew:
 * one that was revoked or may no longer sign in is refused at once, whoever changed it.
 */
export async function authenticateSession(
  service: Service,
  { keyId, secretExpiresAt }: AskingSession,
): Promise<Caller> {
  const found = await findKeyById(service.database, keyId)
  const now = service.clock.now()
  if (found === null || isDone(found.key.expiresAt, now)) throw signedOut()
  if (isDone(secretExpiresAt, now)) throw signedOut()
  if (!permits(found.key.scopes, 'dashboard')) throw signedOut()
  return callerOf(service, { ...found, secretExpiresAt })
}

const callerOf = ({ settings }: Service, { account, ...found }: FoundKey): Caller => ({
  ...{ account, ...found },
  plan: findPlan(settings.plans, account.plan),
})

const signedOut = () =>
  new ApiError(
    'authentication_error',
    'The API key of this session was revoked, has expired, or may no longer sign in: sign in again',
  )

const unauthenticated = () =>
  new ApiError(
    'authentication_error',
    'Missing or invalid API key: send Authorization: Bearer <API_KEY>',
  )

const expired = () =>
  new ApiError('key_expired', 'This API key has expired or was replaced: use a current one')

const revoked = () => new ApiError('key_revoked', 'This API key was revoked: use another one')

/** The name of the scheme is known in any case (RFC 9110 §11.1). */
const BEARER = /^Bearer +([\w-]{1,128}) *$/i

const isDone = (at: number | null, now: number) => at !== null && at <= now
