import type { Context } from 'hono'
import { creditsExceededError } from '../../accounts/credits/quota-thresholds.ts'
import type { Reservation } from '../../accounts/credits/usage-ledger.ts'
import type { Env } from '../context.ts'
import { creditState, outOfCredits } from '../middleware/rate-limit.ts'
import type { Service } from '../service.ts'

/** Reserved credits, or a cached answer that needs none. */
type ReservedOrCached<Cached> =
  | { readonly reservation: Reservation; readonly cached: null }
  | { readonly reservation: null; readonly cached: Cached }

/**
 * Reserves credits for verifications within a request. If too few are left, returns what
 * `getCached` finds, since cached answers are free; throws `quota_exceeded` if that is null.
 */
export async function reserveOrGetCached<Cached>(
  c: Context<Env>,
  service: Service,
  amount: number,
  getCached: () => Promise<Cached | null>,
): Promise<ReservedOrCached<Cached>> {
  const { account, plan } = c.get('caller')
  const reservation = await service.ledger.reserve(account.id, plan, amount)
  if (reservation !== null) return { reservation, cached: null }
  const cached = await getCached()
  if (cached !== null) return { reservation: null, cached }
  const credits = await creditState(service, c.get('caller'))
  if (credits?.remaining === 0) throw outOfCredits(service, credits.limit)
  throw creditsExceededError(plan, service.clock.now(), { needed: amount, left: null })
}
