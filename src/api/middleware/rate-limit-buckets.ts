import { type IpLimits, isFreePlan } from '../../accounts/plan.ts'
import type { Bucket, BucketState } from '../../accounts/rate-limits/windows.ts'
import { HOUR, MINUTE, SECOND } from '../../platform/clock.ts'
import { formatDuration, pluralize } from '../../platform/format.ts'
import { isLoopback, rateLimitIp } from '../../platform/ip.ts'
import type { Caller, DashboardSession } from '../context.ts'
import type { ServiceDeps, ServiceSettings } from '../service.ts'

export type LimitDeps = Pick<ServiceDeps, 'limits' | 'settings'>

/** The kind of request that is counted in addition to the requests of its key. */
export type Counts = 'single' | 'form' | 'bulk' | null

/** The limit that a bucket belongs to. */
export const LIMIT_KINDS = [
  ...(['ip:single', 'ip:bulk', 'ip:form'] as const),
  ...(['account:plan', 'key:own', 'session'] as const),
] as const

export type LimitKind = (typeof LIMIT_KINDS)[number]

export type KindBucket = Bucket & { readonly kind: LimitKind }

/**
 * All buckets that a request is counted in when it is admitted. The first exhausted one is
 * reported. A list is counted in that of its IP address when it is created.
 */
export function requestBuckets(
  caller: Caller,
  origin: RequestOrigin,
  counts: Counts,
): KindBucket[] {
  const { session } = origin
  if (counts === null && session !== undefined) return [sessionBucket(session)]
  const ofCaller = callerBuckets(caller)
  if (counts === null || counts === 'bulk') return ofCaller
  return [...ipBuckets(counts, caller, origin), ...ofCaller]
}

/** All buckets that apply to a caller, for requests of any kind. */
export function allBuckets(caller: Caller, origin: RequestOrigin): KindBucket[] {
  const { session } = origin
  return [
    ...IP_KINDS.flatMap(kind => ipBuckets(kind, caller, origin)),
    ...callerBuckets(caller),
    ...(session === undefined ? [] : [sessionBucket(session)]),
  ]
}

const IP_KINDS = ['single', 'bulk', 'form'] as const

/** The bucket of the IP address for a kind of request; none if the caller has no such limit. */
export function ipBuckets(
  kind: NonNullable<Counts>,
  caller: Caller,
  { ip, isLocal, settings }: RequestOrigin,
): KindBucket[] {
  if ((isLocal && settings.trustLoopback) || isOwner(kind, caller)) return []
  return [IP_BUCKETS[kind](settings.ipLimits, ip)]
}

/**
 * Whether a request is the admin's own, who sets the limits. Forms are not: visitors of a website
 * send them with a publishable key.
 */
const isOwner = (kind: NonNullable<Counts>, { account, plan }: Caller) =>
  kind !== 'form' && account.operator === 1 && !isFreePlan(plan)

/** The client of a request and, if any, its dashboard session. */
export type RequestOrigin = {
  readonly ip: string
  /** Whether the client is on this machine. */
  readonly isLocal: boolean
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
  limit: SESSION_VIEWS_MAX,
  perMs: MINUTE,
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

/** Describes an exceeded limit, such as `10 lists an hour from one IP address (192.0.2.1)`. */
export function describeLimit({ kind, limit, perMs }: KindBucket, ip: string): string {
  const address = `from one IP address (${rateLimitIp(ip)})`
  switch (kind) {
    case 'ip:single':
      return `${pluralize(limit, 'single verification')} a minute ${address}`
    case 'ip:bulk':
      return `${pluralize(limit, 'list')} an hour ${address}`
    case 'ip:form':
      return `${pluralize(limit, 'verification for forms', 'verifications for forms')} a minute ${address}`
    case 'key:own':
      return `${pluralize(limit, 'request')} a minute with this key`
    case 'session':
      return `${pluralize(limit, 'request')} a minute in one dashboard session`
    case 'account:plan':
      return `${pluralize(limit, 'request')} ${SPANS.get(perMs) ?? `in ${formatDuration(perMs)}`} in your plan`
    default:
      return kind satisfies never
  }
}

const SPANS: ReadonlyMap<number, string> = new Map([
  [SECOND, 'a second'],
  [MINUTE, 'a minute'],
  [HOUR, 'an hour'],
])

/** Says how to change a limit; null if no setting changes it. */
export function describeSetting({ kind }: KindBucket, ip: string): string | null {
  switch (kind) {
    case 'ip:single':
    case 'ip:bulk':
    case 'ip:form':
      return isLoopback(ip)
        ? BEHIND_PROXY
        : `${ADMIN} "${IP_SETTINGS[kind]}" of "ip-limits" in the config file.`
    case 'key:own':
      return 'To change it, set "rate_limit_per_minute" with PATCH /v1/keys/{id}.'
    case 'account:plan':
      return `${ADMIN} the plan with ev accounts set-plan, or the limit in "plans" of the config file.`
    case 'session':
      return null
    default:
      return kind satisfies never
  }
}

const ADMIN = 'The admin of this service can change'

const IP_SETTINGS = {
  'ip:single': 'single-per-minute',
  'ip:bulk': 'bulk-per-hour',
  'ip:form': 'form-per-minute',
} as const

/** A loopback address has a limit only if the request may have come through a proxy. */
const BEHIND_PROXY =
  'All clients of a reverse proxy share this limit until the admin of this service sets --trust-proxy to the address of the proxy.'

/** The headers that show a limit. */
export function limitHeaders(limit: BucketState): readonly (readonly [string, string])[] {
  return [
    ['X-RateLimit-Limit', String(limit.limit)],
    ['X-RateLimit-Remaining', String(limit.remaining)],
    // In Unix seconds, rounded up so that a retry at that time is not too early.
    ['X-RateLimit-Reset', String(Math.ceil(limit.resetAt / 1_000))],
  ]
}

/** The limit shown to clients without a key: that of single verifications for their IP address. */
export function openLimit({ limits, settings }: LimitDeps, ip: string): BucketState {
  return limits.peek([IP_BUCKETS.single(settings.ipLimits, ip)])[0] as BucketState
}

/** Returns the state with the smallest share left. `states` must not be empty. */
export function nearestLimit(states: readonly BucketState[]): BucketState {
  return states.reduce((nearest, state) =>
    shareLeft(state) < shareLeft(nearest) ? state : nearest,
  )
}

const shareLeft = ({ remaining, limit }: BucketState) => (limit === 0 ? 0 : remaining / limit)
