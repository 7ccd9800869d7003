import type { Context } from 'hono'
import { creditsLeft, creditsUsedUpError } from '../../accounts/credits/credit-store.ts'
import { periodEnd, periodStart } from '../../accounts/plan.ts'
import type { BucketState } from '../../accounts/rate-limits/windows.ts'
import { MINUTE } from '../../platform/clock.ts'
import type { OperationError } from '../../platform/operation-error.ts'
import type { Caller, Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'
import { getState } from '../state.ts'
import {
  type Counts,
  describeLimit,
  type KindBucket,
  nearestLimit,
  type RequestOrigin,
  requestBuckets,
  showLimit,
} from './rate-limit-buckets.ts'

/** Handle of an admitted request, to correct what it was counted as. */
export type Admitted = {
  /** Set if the account has no credits left: only a free answer is possible. Null otherwise. */
  readonly noCredits: BucketState | null
  /** Removes the request from the limit of lists, since no list was created. */
  uncountList(): void
  /** Removes the request from all limits, since it was refused for lack of credits. */
  uncount(): void
}

/**
 * Admits a request and counts it in all limits that apply, or refuses it and counts it in none. The
 * sandbox counts too, but costs no credits, and the headers of its admitted requests are simulated.
 */
export async function admit(
  c: Context<Env>,
  service: Service,
  { caller, counts, mayBeFree }: AdmissionRequest,
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
  const buckets = requestBuckets(caller, { ...requestOrigin(c, service), counts })
  const { refusedBy, states, giveBack } = settings.limits
    ? await limits.charge(buckets)
    : { refusedBy: null, states: limits.peek(buckets), giveBack: null }
  const refusal = refusedBy === null ? undefined : states[refusedBy]
  if (refusedBy !== null && refusal !== undefined) {
    showLimit(c, refusal)
    throwRateLimited(service, buckets[refusedBy] as KindBucket, refusal)
  }
  // A single verification takes one credit, unless its answer is cached or unknown.
  const creditsAfter = credits && {
    ...credits,
    remaining: Math.max(0, credits.remaining - (counts === 'bulk' ? 0 : 1)),
  }
  const show = (now: readonly BucketState[]) =>
    showLimit(
      c,
      sandbox
        ? simulated(service)
        : nearestLimit(creditsAfter === null ? now : [...now, creditsAfter]),
    )
  show(states)
  const listBucket = buckets.findIndex(({ kind }) => kind === 'ip:bulk')
  return {
    noCredits,
    uncountList() {
      if (listBucket !== -1 && giveBack !== null)
        show(states.with(listBucket, giveBack(listBucket)))
    },
    uncount() {
      if (giveBack !== null) for (const index of buckets.keys()) giveBack(index)
      if (credits !== null) showLimit(c, credits)
    },
  }
}

type AdmissionRequest = {
  readonly caller: Caller
  readonly counts: Counts
  /**
   * The answer may be free: the request is admitted without credits, and its handler refuses what
   * would cost some.
   */
  readonly mayBeFree: boolean
}

export const requestOrigin = (c: Context<Env>, { settings }: Service): RequestOrigin => ({
  ...{ ip: c.get('ip'), settings },
  session: c.env?.session,
})

/** Constant values, so that tests of clients are repeatable (section 4.9.7 of the interface). */
const simulated = ({ clock }: Service): BucketState => ({
  ...{ limit: 100, remaining: 99 },
  resetAt: clock.now() + MINUTE,
})

/**
 * Daily credits of a plan that limits them, otherwise null. They are charged when results are
 * posted to the ledger.
 */
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

/** The error of an account that has no credits left. */
export function outOfCredits(service: Service, limit: number): OperationError {
  getState(service).metrics.refused('credits')
  return creditsUsedUpError(limit, service.clock.now())
}

function throwRateLimited(service: Service, bucket: KindBucket, { resetAt }: BucketState): never {
  getState(service).metrics.refused(bucket.kind)
  const retryAfterS = secondsTo(service, resetAt)
  const message = `Rate limit exceeded: ${describeLimit(bucket)}. Try again in ${retryAfterS} s.`
  throw new ApiError('rate_limit', message, { retryAfterS })
}

const secondsTo = ({ clock }: Service, at: number) =>
  Math.max(1, Math.ceil((at - clock.now()) / 1_000))
