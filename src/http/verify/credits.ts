import type { Context } from 'hono'
import { type Plan, periodEnd } from '../../account/plan.ts'
import { SECOND } from '../../base/clock.ts'
import { formatNumber } from '../../base/format.ts'
import { isoTime } from '../../engine/result/present.ts'
import type { Hold } from '../../work/books/books.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../error/api-error.ts'
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
  if (credits?.remaining === 0) throw outOfCredits(service, credits)
  throw quotaExceeded(plan, service.clock.now(), { needed: amount, left: null })
}

/** Says what the plan gives, what there is left of it, and when there is more; null: not known. */
export function quotaExceeded(
  { name, creditsPerDay }: Plan,
  now: number,
  { needed, left }: { readonly needed: number | null; readonly left: number | null },
): ApiError {
  const resetAt = periodEnd(now)
  const wanted = needed === null ? 'more than that' : formatNumber(needed)
  const rest =
    left === null
      ? 'not enough are left'
      : `${formatNumber(left)} are left, and this list needs ${wanted}`
  return new ApiError(
    'quota_exceeded',
    `The plan ${name} gives ${creditsPerDay} verifications a day; ${rest}. They are given anew at ${isoTime(resetAt)}.`,
    { retryAfterS: Math.ceil((resetAt - now) / SECOND) },
  )
}
