import type { Context } from 'hono'
import { creditsExceeded } from '../../account/quota.ts'
import type { Hold } from '../../work/books/books.ts'
import type { Env } from '../context.ts'
import { creditState, outOfCredits } from '../limit/admit.ts'
import type { Service } from '../service.ts'

/** Credits that are reserved, or what is known without any. */
export type HeldOrKnown<Known> =
  | { readonly hold: Hold; readonly known: null }
  | { readonly hold: null; readonly known: Known }

/**
 * Reserves credits for verifications that a client waits for. Where the plan has too few left, gives what `recall`
 * finds, as remembered answers cost none; throws `quota_exceeded` where that is null.
 */
export async function holdOrRecall<Known>(
  c: Context<Env>,
  service: Service,
  amount: number,
  recall: () => Promise<Known | null>,
): Promise<HeldOrKnown<Known>> {
  const { account, plan } = c.get('caller')
  const hold = await service.books.hold(account.id, plan, amount)
  if (hold !== null) return { hold, known: null }
  const known = await recall()
  if (known !== null) return { hold: null, known }
  const credits = await creditState(service, c.get('caller'))
  if (credits?.remaining === 0) throw outOfCredits(service, credits.limit)
  throw creditsExceeded(plan, service.clock.now(), { needed: amount, left: null })
}
