import { hashOf, isWellFormed } from '../../account/key.ts'
import { planNamed } from '../../account/plan.ts'
import { recallKey } from '../../store/account/key-cache.ts'
import type { Caller } from '../context.ts'
import { ApiError } from '../error/api-error.ts'
import type { Service } from '../service.ts'

/** Who asks, by the key in `Authorization: Bearer …`. What is wrong with a key is not told: there is one answer for all. */
export async function authenticate(
  service: Service,
  authorization: string | undefined,
): Promise<Caller> {
  const text = BEARER.exec(authorization ?? '')?.[1]
  // A key that is mistyped or made up is told without asking the database.
  if (text === undefined || !isWellFormed(text)) throw unauthenticated()
  const found = await recallKey(service.database, hashOf(text))
  const now = service.clock.now()
  if (found === null || isOver(found.key.expiresAt, now) || isOver(found.secretExpiresAt, now)) {
    throw unauthenticated()
  }
  const { key, account } = found
  return { key, account, plan: planNamed(service.settings.plans, account.plan) }
}

const unauthenticated = () =>
  new ApiError(
    'authentication_error',
    'Missing or invalid API key: send Authorization: Bearer <API_KEY>',
  )

/** The name of the scheme is known in any case (RFC 9110 §11.1). */
const BEARER = /^Bearer +([\w-]{1,128}) *$/i

const isOver = (at: number | null, now: number) => at !== null && at <= now
