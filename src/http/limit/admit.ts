import type { Context } from 'hono'
import { periodEnd, periodStart } from '../../account/plan.ts'
import { MINUTE } from '../../base/clock.ts'
import { creditsLeft } from '../../store/account/credits.ts'
import type { BucketState } from '../../store/limit/limits.ts'
import type { Caller, Env } from '../context.ts'
import { ApiError } from '../error/api-error.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'
import { type Asking, bucketsOf, type Counts, type KindBucket, nameOf } from './buckets.ts'
import { nearestOf, showLimit } from './headers.ts'

/** A request that was let in. */
export type Admitted = {
  /** Says that no list came of it: it is not counted as one then. */
  noList(): void
}

/**
 * Lets a request pass all limits that hold for it and counts it in each, or refuses it and counts it in none. The
 * sandbox counts as well, but it costs no credits, and the headers of what passes are simulated.
 */
export async function admit(
  c: Context<Env>,
  service: Service,
  { caller, counts }: { caller: Caller; counts: Counts },
): Promise<Admitted> {
  const { limits, settings } = service
  const sandbox = c.get('sandbox')
  const credits = counts === null || sandbox ? null : await creditState(service, caller)
  if (credits?.remaining === 0) {
    showLimit(c, credits)
    await service.books.refused(caller.account.id, caller.plan)
    refuseCredits(service, credits)
  }
  const buckets = bucketsOf(caller, { ...askingOf(c, service), counts })
  const { refusedBy, states, giveBack } = settings.limits
    ? await limits.take(buckets)
    : { refusedBy: null, states: limits.peek(buckets), giveBack: null }
  const refusal = refusedBy === null ? undefined : states[refusedBy]
  if (refusedBy !== null && refusal !== undefined) {
    showLimit(c, refusal)
    refuse(service, buckets[refusedBy] as KindBucket, refusal)
  }
  // One verification will take one, unless its answer is known or nobody can tell.
  const left = credits && {
    ...credits,
    remaining: credits.remaining - (counts === 'single' ? 1 : 0),
  }
  const show = (now: readonly BucketState[]) =>
    showLimit(c, sandbox ? simulated(service) : nearestOf(left === null ? now : [...now, left]))
  show(states)
  const ofLists = buckets.findIndex(({ kind }) => kind === 'ip:bulk')
  return {
    noList() {
      if (ofLists !== -1 && giveBack !== null) show(states.with(ofLists, giveBack(ofLists)))
    },
  }
}

/** From where a request comes. */
export const askingOf = (c: Context<Env>, { settings }: Service): Asking => ({
  ...{ ip: c.get('ip'), settings },
  session: c.env?.session,
})

/** The same for every request, so that tests of clients are repeatable (section 4.9.7 of the interface). */
const simulated = ({ clock }: Service): BucketState => ({
  ...{ limit: 100, remaining: 99 },
  resetAt: clock.now() + MINUTE,
})

/** The credits of the day, for a plan that has an end to them; they are charged where results are booked. */
export async function creditState(
  { database, clock }: Service,
  { account, plan }: Caller,
): Promise<BucketState | null> {
  if (plan.creditsPerDay === null) return null
  const now = clock.now()
  const limit = plan.creditsPerDay
  const credits = { accountId: account.id, period: periodStart(now), limit }
  return { limit, remaining: await creditsLeft(database, credits), resetAt: periodEnd(now) }
}

function refuseCredits(service: Service, { limit, resetAt }: BucketState): never {
  stateOf(service).metrics.refused('credits')
  const sentence = `All ${limit} verifications of the day are used up. The next ones can be had at midnight UTC.`
  throw new ApiError('quota_exceeded', sentence, { retryAfterS: secondsTo(service, resetAt) })
}

function refuse(service: Service, bucket: KindBucket, { resetAt }: BucketState): never {
  stateOf(service).metrics.refused(bucket.kind)
  const retryAfterS = secondsTo(service, resetAt)
  const sentence = `Rate limit exceeded: ${nameOf(bucket)}. Try again in ${retryAfterS} s.`
  throw new ApiError('rate_limit', sentence, { retryAfterS })
}

const secondsTo = ({ clock }: Service, at: number) =>
  Math.max(1, Math.ceil((at - clock.now()) / 1_000))
