import type { Context } from 'hono'
import { creditsLeft, creditsUsedUpError } from '../../accounts/credits/credit-store.ts'
import { periodEnd, periodStart } from '../../accounts/plan.ts'
import type { BucketState } from '../../accounts/rate-limits/windows.ts'
import { MINUTE, SECOND } from '../../platform/clock.ts'
import { formatDurationInWords } from '../../platform/format.ts'
import type { OperationError } from '../../platform/operation-error.ts'
import type { Admitted, Caller, Env } from '../context.ts'
import type { ApiError } from '../errors/api-error.ts'
import { requestError } from '../errors/request-errors.ts'
import type { Metrics } from '../metrics.ts'
import type { ServiceDeps } from '../service.ts'
import {
  type Counts,
  describeLimit,
  describeSetting,
  ipBuckets,
  type KindBucket,
  nearestLimit,
  type RequestOrigin,
  requestBuckets,
} from './rate-limit-buckets.ts'

export type RateLimitDeps = Pick<
  ServiceDeps,
  'clock' | 'database' | 'ledger' | 'limits' | 'settings'
> & {
  readonly metrics: Metrics
}

/**
 * Admits a request and counts it in all limits that apply, or refuses it and counts it in none. The
 * sandbox counts too, but costs no credits, and the headers of its admitted requests are simulated.
 */
export async function admit(
  c: Context<Env>,
  service: RateLimitDeps,
  { caller, counts, mayBeFree }: AdmissionRequest,
): Promise<Admitted> {
  const { limits, settings } = service
  const sandbox = c.get('sandbox')
  const hasCredits = counts !== null && !sandbox && caller.plan.creditsPerDay !== null
  const credits = hasCredits ? await creditState(service, caller) : null
  const noCredits = credits?.remaining === 0 ? credits : null
  if (noCredits !== null && !mayBeFree) {
    c.set('limit', noCredits)
    await service.ledger.refused(caller.account.id, caller.plan)
    throw outOfCredits(service, noCredits.limit)
  }
  const origin = requestOrigin(c, service)
  /** Charges buckets, or throws ApiError. */
  const charge = async (buckets: readonly KindBucket[]): Promise<Counted> => {
    if (!settings.limits || buckets.length === 0)
      return { states: limits.peek(buckets), uncount: () => limits.peek(buckets) }
    const { refusedBy, states, giveBack } = await limits.charge(buckets)
    const refusal = refusedBy === null ? undefined : states[refusedBy]
    if (refusedBy === null || refusal === undefined)
      return { states, uncount: () => buckets.map((_, index) => giveBack(index)) }
    c.set('limit', refusal)
    throw rateLimited(service, buckets[refusedBy] as KindBucket, refusal, origin.ip)
  }
  const request = await charge(requestBuckets(caller, origin, counts))
  let list = NOT_COUNTED
  // A single verification takes one credit, unless its answer is cached or unknown.
  const creditsAfter = credits && {
    ...credits,
    remaining: Math.max(0, credits.remaining - (counts === 'bulk' ? 0 : 1)),
  }
  const show = (now: readonly BucketState[]) =>
    c.set(
      'limit',
      sandbox
        ? simulated(service)
        : nearestLimit(creditsAfter === null ? now : [...now, creditsAfter]),
    )
  show(request.states)
  const countList = async (buckets: readonly KindBucket[]) => {
    try {
      list = await charge(buckets)
    } catch (error) {
      request.uncount()
      throw error
    }
    show([...request.states, ...list.states])
  }
  return {
    noCredits,
    countList: () => countList(ipBuckets('bulk', caller, origin)),
    // A limit below the length of an instant list must not refuse it forever.
    countAddresses: count =>
      countList(
        ipBuckets('single', caller, origin).map(bucket => ({
          ...bucket,
          cost: Math.min(count, bucket.limit),
        })),
      ),
    uncountList() {
      if (list === NOT_COUNTED) return
      show([...request.states, ...list.uncount()])
      list = NOT_COUNTED
    },
    uncount() {
      list.uncount()
      request.uncount()
      if (credits !== null) c.set('limit', credits)
    },
  }
}

/** What was counted, with the states of its buckets. */
type Counted = {
  readonly states: readonly BucketState[]
  /** Refunds it and returns the new states. */
  uncount(): readonly BucketState[]
}

const NOT_COUNTED: Counted = { states: [], uncount: () => [] }

type AdmissionRequest = {
  readonly caller: Caller
  readonly counts: Counts
  /**
   * The answer may be free: the request is admitted without credits, and its handler refuses what
   * would cost some.
   */
  readonly mayBeFree: boolean
}

export const requestOrigin = (c: Context<Env>, { settings }: RateLimitDeps): RequestOrigin => ({
  ip: c.get('ip'),
  isLocal: c.get('isLocal'),
  settings,
  session: c.env?.session,
})

/** Constant values, so that tests of clients are repeatable (section 4.9.7 of the interface). */
const simulated = ({ clock }: RateLimitDeps): BucketState => ({
  limit: 100,
  remaining: 99,
  resetAt: clock.now() + MINUTE,
})

/**
 * Daily credits of a plan that limits them, otherwise null. They are charged when results are
 * posted to the ledger.
 */
export async function creditState(
  { database, clock }: RateLimitDeps,
  { account, plan }: Caller,
): Promise<BucketState | null> {
  if (plan.creditsPerDay === null) return null
  const now = clock.now()
  const limit = plan.creditsPerDay
  const credits = { accountId: account.id, period: periodStart(now), limit }
  return { limit, remaining: await creditsLeft(database, credits), resetAt: periodEnd(now) }
}

/** The error of an account that has no credits left. */
export function outOfCredits(service: RateLimitDeps, limit: number): OperationError {
  service.metrics.refused('credits')
  return creditsUsedUpError(limit, service.clock.now())
}

function rateLimited(
  service: RateLimitDeps,
  bucket: KindBucket,
  { resetAt }: BucketState,
  ip: string,
): ApiError {
  service.metrics.refused(bucket.kind)
  const retryAfterS = Math.max(1, Math.ceil((resetAt - service.clock.now()) / SECOND))
  const wait = formatDurationInWords(retryAfterS * SECOND, Math.ceil)
  const setting = describeSetting(bucket, ip)
  const limit = describeLimit(bucket, ip)
  return requestError('rate_limit_exceeded', { limit, wait, setting, retryAfterS })
}
