import type { Context } from 'hono'
import { type Plan, periodEnd } from '../../account/plan.ts'
import { SECOND } from '../../base/clock.ts'
import { isoTime } from '../../engine/result/present.ts'
import type { Hold } from '../../work/books/books.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../error/api-error.ts'
import type { Service } from '../service.ts'

/** Sets credits aside for verifications that somebody waits for; throws where the plan has not so many left. */
export async function holdCredits(
  c: Context<Env>,
  { books, clock }: Service,
  amount: number,
): Promise<Hold> {
  const { account, plan } = c.get('caller')
  const hold = await books.hold(account.id, plan, amount)
  if (hold === null) throw quotaExceeded(plan, clock.now(), { needed: amount, left: null })
  return hold
}

/** Says what the plan gives, what there is left of it, and when there is more; null: not known. */
export function quotaExceeded(
  { name, creditsPerDay }: Plan,
  now: number,
  { needed, left }: { readonly needed: number | null; readonly left: number | null },
): ApiError {
  const resetAt = periodEnd(now)
  const wanted = needed === null ? 'more than that' : needed.toLocaleString('en')
  const rest =
    left === null
      ? 'not enough are left'
      : `${left.toLocaleString('en')} are left, and this list needs ${wanted}`
  return new ApiError(
    'quota_exceeded',
    `The plan ${name} gives ${creditsPerDay} verifications a day; ${rest}. They are given anew at ${isoTime(resetAt)}.`,
    { retryAfterS: Math.ceil((resetAt - now) / SECOND) },
  )
}
