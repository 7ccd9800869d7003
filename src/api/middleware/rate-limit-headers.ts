import type { Context } from 'hono'
import type { BucketState } from '../../accounts/rate-limits/types.ts'
import { MINUTE } from '../../platform/clock.ts'
import { countedIp } from '../../platform/ip.ts'
import type { Env } from '../context.ts'
import { layHeader } from '../headers.ts'
import type { Service } from '../service.ts'
import type { KindBucket } from './rate-limit-buckets.ts'

/** Shows the limit that is nearest to its end; a later call takes the place of an earlier one. */
export function showLimit(c: Context<Env>, nearest: BucketState): void {
  const [limit, remaining, reset] = valuesOf(nearest)
  layHeader(c, 'X-RateLimit-Limit', limit)
  layHeader(c, 'X-RateLimit-Remaining', remaining)
  layHeader(c, 'X-RateLimit-Reset', reset)
}

/** The headers of an answer that comes about without the app, such as to a request that nobody could read. */
export function limitHeaders(service: Service, ip: string): Record<string, string> {
  const [limit, remaining, reset] = valuesOf(openLimit(service, ip))
  return {
    'X-RateLimit-Limit': limit,
    'X-RateLimit-Remaining': remaining,
    'X-RateLimit-Reset': reset,
  }
}

/** What is shown to whoever has no key: how the limit of single verifications stands for its address. */
export function openLimit({ limits, settings }: Service, ip: string): BucketState {
  return limits.peek([singleBucket(settings.ipLimits.singlePerMinute, ip)])[0] as BucketState
}

export const singleBucket = (limit: number, ip: string): KindBucket => ({
  kind: 'ip:single',
  key: `ip:single:${countedIp(ip)}`,
  limit,
  perMs: MINUTE,
})

/** The one of which the smallest part is left; there is always one. */
export function nearestOf(states: readonly BucketState[]): BucketState {
  return states.reduce((nearest, state) => (shareOf(state) < shareOf(nearest) ? state : nearest))
}

const shareOf = ({ remaining, limit }: BucketState) => (limit === 0 ? 0 : remaining / limit)

/** Unix seconds, rounded up: whoever comes then is not early. */
const valuesOf = ({ limit, remaining, resetAt }: BucketState) =>
  [String(limit), String(remaining), String(Math.ceil(resetAt / 1_000))] as const
