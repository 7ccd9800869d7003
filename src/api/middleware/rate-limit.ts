import type { Context } from 'hono'
import { creditsLeft } from '../../accounts/credits/credit-store.ts'
import { creditsUsedUp } from '../../accounts/credits/quota-thresholds.ts'
import { periodEnd, periodStart } from '../../accounts/plan.ts'
import type { BucketState } from '../../accounts/rate-limits/types.ts'
import { MINUTE } from '../../platform/clock.ts'
import type { OperationError } from '../../platform/operation-error.ts'
import type { Caller, Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'
import {
  type Asking,
  bucketsOf,
  type Counts,
  type KindBucket,
  nameOf,
  nearestOf,
  showLimit,
} from './rate-limit-buckets.ts'

/** A request that was let in. */
export type Admitted = {
  /** The credits of an account that has none left: only what costs none can be answered; null: it has some. */
  readonly noCredits: BucketState | null
  /** Says that no list came of it: it is not counted as one then. */
  noList(): void
  /** Takes all counts back: the request was refused for want of credits. */
  uncount(): void
}

/**
 * Lets a request pass all limits that hold for it and counts it in each, or refuses it and counts it in none. The
 * sandbox counts as well, but it costs no credits, and the headers of what passes are simulated.
 */
export async function admit(
  c: Context<Env>,
  service: Service,
  { caller, counts, mayBeFree }: Asked,
): Promise<Admitted> {
  const { limits, settings } = service
  const sandbox = c.get('sandbox')
  const credits = counts === null || sandbox ? null : await creditState(service, caller)
  const noCredits = credits?.remaining === 0 ? credits : null
  if (noCredits !== null && !mayBeFree) {
    showLimit(c, noCredits)
    await service.ledger.refused(caller.account.id, caller.plan)
    throw outOfCredits(service, noCredits.limit)
  }
  const buckets = bucketsOf(caller, { ...askingOf(c, service), counts })
  const { refusedBy, states, giveBack } = settings.limits
    ? await limits.charge(buckets)
    : { refusedBy: null, states: limits.peek(buckets), giveBack: null }
  const refusal = refusedBy === null ? undefined : states[refusedBy]
  if (refusedBy !== null && refusal !== undefined) {
    showLimit(c, refusal)
    refuse(service, buckets[refusedBy] as KindBucket, refusal)
  }
  // One verification will take one, unless its answer is known or nobody can tell.
  const left = credits && {
    ...credits,
    remaining: Math.max(0, credits.remaining - (counts === 'single' ? 1 : 0)),
  }
  const show = (now: readonly BucketState[]) =>
    showLimit(c, sandbox ? simulated(service) : nearestOf(left === null ? now : [...now, left]))
  show(states)
  const ofLists = buckets.findIndex(({ kind }) => kind === 'ip:bulk')
  return {
    noCredits,
    noList() {
      if (ofLists !== -1 && giveBack !== null) show(states.with(ofLists, giveBack(ofLists)))
    },
    uncount() {
      if (giveBack !== null) for (const index of buckets.keys()) giveBack(index)
      if (credits !== null) showLimit(c, credits)
    },
  }
}

/** What is asked to be let in. */
type Asked = {
  readonly caller: Caller
  readonly counts: Counts
  /** Its answer may cost no credit: it is let in without one, and its handler refuses what would cost. */
  readonly mayBeFree: boolean
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

/** The refusal of an account that has no credit left. */
export function outOfCredits(service: Service, limit: number): OperationError {
  stateOf(service).metrics.refused('credits')
  return creditsUsedUp(limit, service.clock.now())
}

function refuse(service: Service, bucket: KindBucket, { resetAt }: BucketState): never {
  stateOf(service).metrics.refused(bucket.kind)
  const retryAfterS = secondsTo(service, resetAt)
  const sentence = `Rate limit exceeded: ${nameOf(bucket)}. Try again in ${retryAfterS} s.`
  throw new ApiError('rate_limit', sentence, { retryAfterS })
}

const secondsTo = ({ clock }: Service, at: number) =>
  Math.max(1, Math.ceil((at - clock.now()) / 1_000))
