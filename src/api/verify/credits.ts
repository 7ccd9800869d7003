import type { Context } from 'hono'
import { creditsExceeded } from '../../accounts/credits/quota-thresholds.ts'
import type { Reservation } from '../../accounts/credits/usage-ledger.ts'
import type { Env } from '../context.ts'
import { creditState, outOfCredits } from '../middleware/rate-limit.ts'
import type { Service } from '../service.ts'

/** Credits that are reserved, or what is known without any. */
export type ReservedOrCached<Known> =
  | { readonly reservation: Reservation; readonly known: null }
  | { readonly reservation: null; readonly known: Known }

/**
 * Reserves credits for verifications that a client waits for. Where the plan has too few left, gives what `recall`
 * finds, as remembered answers cost none; throws `quota_exceeded` where that is null.
 */
export async function reserveOrGetCached<Known>(
  c: Context<Env>,
  service: Service,
  amount: number,
  getCached: () => Promise<Known | null>,
): Promise<ReservedOrCached<Known>> {
  const { account, plan } = c.get('caller')
  const reservation = await service.ledger.reserve(account.id, plan, amount)
  if (reservation !== null) return { reservation, known: null }
  const known = await getCached()
  if (known !== null) return { reservation: null, known }
  const credits = await creditState(service, c.get('caller'))
  if (credits?.remaining === 0) throw outOfCredits(service, credits.limit)
  throw creditsExceeded(plan, service.clock.now(), { needed: amount, left: null })
}
