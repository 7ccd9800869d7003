import type { Context } from 'hono'
import type { Bucket, BucketState } from '../../accounts/rate-limits/types.ts'
import { HOUR, MINUTE } from '../../platform/clock.ts'
import { rateLimitIp } from '../../platform/ip.ts'
import type { AskingSession, Caller, Env } from '../context.ts'
import { layHeader } from '../headers.ts'
import type { Service, ServiceSettings } from '../service.ts'

/** What a request is counted as, beside being a request of its key. */
export type Counts = 'single' | 'bulk' | null

/** Which limit a bucket stands for. */
export const LIMIT_KINDS = ['ip:single', 'ip:bulk', 'key:plan', 'key:own', 'session'] as const

export type LimitKind = (typeof LIMIT_KINDS)[number]

export type KindBucket = Bucket & { readonly kind: LimitKind }

/** All limits that a request must pass; the first one that is used up is told. */
export function bucketsOf(
  caller: Caller,
  { ip, counts, settings, session }: Asking & { readonly counts: Counts },
): KindBucket[] {
  if (counts === null && session !== undefined) return [sessionBucket(session)]
  const ofKey = keyBuckets(caller)
  const { singlePerMinute, bulkPerHour } = settings.ipLimits
  if (counts === 'single') return [singleBucket(singlePerMinute, ip), ...ofKey]
  return counts === 'bulk' ? [bulkBucket(bulkPerHour, ip), ...ofKey] : ofKey
}

/** All that hold for whoever asks, whatever for. */
export function allBuckets(caller: Caller, { ip, settings, session }: Asking): KindBucket[] {
  const { singlePerMinute, bulkPerHour } = settings.ipLimits
  return [
    ...[singleBucket(singlePerMinute, ip), bulkBucket(bulkPerHour, ip)],
    ...keyBuckets(caller),
    ...(session === undefined ? [] : [sessionBucket(session)]),
  ]
}

/** From where, and by which session of the dashboard, if it is by one. */
export type Asking = {
  readonly ip: string
  readonly settings: ServiceSettings
  readonly session: AskingSession | undefined
}

const bulkBucket = (limit: number, ip: string): KindBucket => ({
  kind: 'ip:bulk',
  key: `ip:bulk:${rateLimitIp(ip)}`,
  ...{ limit, perMs: HOUR },
})

function keyBuckets({ key, plan }: Caller): KindBucket[] {
  const { requests, perMs } = plan
  const ofPlan = { kind: 'key:plan', key: `key:plan:${key.id}`, limit: requests, perMs } as const
  if (key.rateLimitPerMinute === null) return [ofPlan]
  const own = { limit: key.rateLimitPerMinute, perMs: MINUTE }
  return [ofPlan, { kind: 'key:own', key: `key:own:${key.id}`, ...own }]
}

/**
 * What a session looks at, a minute. A page asks for several things at once and one that is live asks again every few
 * seconds, so a plan of ten a minute would show nobody their own account; ten a second is more than people look at.
 */
export const SESSION_VIEWS_MAX = 600

const sessionBucket = ({ sessionId }: AskingSession): KindBucket => ({
  kind: 'session',
  key: `session:${sessionId}`,
  ...{ limit: SESSION_VIEWS_MAX, perMs: MINUTE },
})

/** What a limit is one of, for people. */
export const subjectOf = (kind: LimitKind): string => SUBJECTS[kind]

const SUBJECTS = {
  'ip:single': 'Single verifications from your IP address',
  'ip:bulk': 'Lists from your IP address',
  'key:plan': 'Requests with this key, by your plan',
  'key:own': 'Requests with this key, by the limit of its own',
  session: 'Requests of this session of the dashboard',
} as const satisfies Record<LimitKind, string>

/** Which limit it was, for people. */
export function nameOf({ kind, limit, perMs }: KindBucket): string {
  if (kind === 'ip:single') return `${limit} single verifications a minute from one IP address`
  if (kind === 'ip:bulk') return `${limit} lists an hour from one IP address`
  if (kind === 'key:own') return `${limit} requests a minute with this key`
  if (kind === 'session') return `${limit} requests a minute in one session of the dashboard`
  const span =
    perMs === MINUTE ? 'a minute' : perMs === 1_000 ? 'a second' : `in ${perMs / 1_000} s`
  return `${limit} requests ${span} in your plan`
}

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

const singleBucket = (limit: number, ip: string): KindBucket => ({
  kind: 'ip:single',
  key: `ip:single:${rateLimitIp(ip)}`,
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
