import type { Context } from 'hono'
import type { IpLimits } from '../../accounts/plan.ts'
import type { Bucket, BucketState } from '../../accounts/rate-limits/windows.ts'
import { HOUR, MINUTE } from '../../platform/clock.ts'
import { rateLimitIp } from '../../platform/ip.ts'
import type { Caller, DashboardSession, Env } from '../context.ts'
import { setHeader } from '../headers.ts'
import type { Service, ServiceSettings } from '../service.ts'

/** The kind of request that is counted in addition to the requests of its key. */
export type Counts = 'single' | 'form' | 'bulk' | null

/** The limit that a bucket belongs to. */
export const LIMIT_KINDS = [
  ...(['ip:single', 'ip:bulk', 'ip:form'] as const),
  ...(['account:plan', 'key:own', 'session'] as const),
] as const

export type LimitKind = (typeof LIMIT_KINDS)[number]

export type KindBucket = Bucket & { readonly kind: LimitKind }

/** All buckets that a request is counted in. The first exhausted one is reported. */
export function requestBuckets(
  caller: Caller,
  { ip, counts, settings, session }: RequestOrigin & { readonly counts: Counts },
): KindBucket[] {
  if (counts === null && session !== undefined) return [sessionBucket(session)]
  const ofCaller = callerBuckets(caller)
  return counts === null ? ofCaller : [IP_BUCKETS[counts](settings.ipLimits, ip), ...ofCaller]
}

/** All buckets that apply to a caller, for requests of any kind. */
export function allBuckets(caller: Caller, { ip, settings, session }: RequestOrigin): KindBucket[] {
  const { ipLimits } = settings
  return [
    ...[IP_BUCKETS.single(ipLimits, ip), IP_BUCKETS.bulk(ipLimits, ip)],
    IP_BUCKETS.form(ipLimits, ip),
    ...callerBuckets(caller),
    ...(session === undefined ? [] : [sessionBucket(session)]),
  ]
}

/** The IP address of a request and, if any, its dashboard session. */
export type RequestOrigin = {
  readonly ip: string
  readonly settings: ServiceSettings
  readonly session: DashboardSession | undefined
}

const ipBucket = (
  kind: Extract<LimitKind, `ip:${string}`>,
  rate: Pick<Bucket, 'limit' | 'perMs'>,
  ip: string,
): KindBucket => ({ kind, key: `${kind}:${rateLimitIp(ip)}`, ...rate })

/** The bucket of an IP address for each kind of request. */
const IP_BUCKETS: Readonly<
  Record<NonNullable<Counts>, (limits: IpLimits, ip: string) => KindBucket>
> = {
  single: ({ singlePerMinute: limit }, ip) => ipBucket('ip:single', { limit, perMs: MINUTE }, ip),
  bulk: ({ bulkPerHour: limit }, ip) => ipBucket('ip:bulk', { limit, perMs: HOUR }, ip),
  form: ({ formPerMinute: limit }, ip) => ipBucket('ip:form', { limit, perMs: MINUTE }, ip),
}

/** The rate of the plan holds for all keys of the account together: more keys give no higher rate. */
function callerBuckets({ account, key, plan }: Caller): KindBucket[] {
  const { requests, perMs } = plan
  const ofPlan = {
    kind: 'account:plan',
    key: `account:plan:${account.id}`,
    limit: requests,
    perMs,
  } as const
  if (key.rateLimitPerMinute === null) return [ofPlan]
  const own = { limit: key.rateLimitPerMinute, perMs: MINUTE }
  return [ofPlan, { kind: 'key:own', key: `key:own:${key.id}`, ...own }]
}

/**
 * Requests of a dashboard session in a minute. A page sends several at once, and a live page polls
 * every few seconds: with a plan of ten a minute an account could not see its own pages. Ten a
 * second is more than a person reads.
 */
export const SESSION_VIEWS_MAX = 600

const sessionBucket = ({ sessionId }: DashboardSession): KindBucket => ({
  kind: 'session',
  key: `session:${sessionId}`,
  ...{ limit: SESSION_VIEWS_MAX, perMs: MINUTE },
})

/** Human-readable title of a limit. */
export const limitTitle = (kind: LimitKind): string => TITLES[kind]

const TITLES = {
  'ip:single': 'Single verifications from your IP address',
  'ip:bulk': 'Lists from your IP address',
  'ip:form': 'Verifications for forms from your IP address',
  'account:plan': 'Requests with all keys of your account, limit of your plan',
  'key:own': 'Requests with this key, limit of the key',
  session: 'Requests of this dashboard session',
} as const satisfies Record<LimitKind, string>

/** Human-readable description of an exceeded limit. */
export function describeLimit({ kind, limit, perMs }: KindBucket): string {
  if (kind === 'ip:single') return `${limit} single verifications a minute from one IP address`
  if (kind === 'ip:bulk') return `${limit} lists an hour from one IP address`
  if (kind === 'ip:form') return `${limit} verifications for forms a minute from one IP address`
  if (kind === 'key:own') return `${limit} requests a minute with this key`
  if (kind === 'session') return `${limit} requests a minute in one dashboard session`
  const span =
    perMs === MINUTE ? 'a minute' : perMs === 1_000 ? 'a second' : `in ${perMs / 1_000} s`
  return `${limit} requests ${span} in your plan`
}

/**
 * Sets the headers of the limit that is closest to exhaustion; a later call overrides an earlier
 * one.
 */
export function showLimit(c: Context<Env>, nearest: BucketState): void {
  const [limit, remaining, reset] = headerValues(nearest)
  setHeader(c, 'X-RateLimit-Limit', limit)
  setHeader(c, 'X-RateLimit-Remaining', remaining)
  setHeader(c, 'X-RateLimit-Reset', reset)
}

/** Limit headers of a response that bypasses the app, such as to an unparsable request. */
export function limitHeaders(service: Service, ip: string): Record<string, string> {
  const [limit, remaining, reset] = headerValues(openLimit(service, ip))
  return {
    'X-RateLimit-Limit': limit,
    'X-RateLimit-Remaining': remaining,
    'X-RateLimit-Reset': reset,
  }
}

/** The limit shown to clients without a key: that of single verifications for their IP address. */
export function openLimit({ limits, settings }: Service, ip: string): BucketState {
  return limits.peek([IP_BUCKETS.single(settings.ipLimits, ip)])[0] as BucketState
}

/** Returns the state with the smallest share left. `states` must not be empty. */
export function nearestLimit(states: readonly BucketState[]): BucketState {
  return states.reduce((nearest, state) =>
    shareLeft(state) < shareLeft(nearest) ? state : nearest,
  )
}

const shareLeft = ({ remaining, limit }: BucketState) => (limit === 0 ? 0 : remaining / limit)

/**
 * Header values. The time is in Unix seconds, rounded up so that a retry at that time is not too
 * early.
 */
const headerValues = ({ limit, remaining, resetAt }: BucketState) =>
  [String(limit), String(remaining), String(Math.ceil(resetAt / 1_000))] as const
