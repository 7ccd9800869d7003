import type { Context, MiddlewareHandler } from 'hono'
import { hashSecret, isWellFormed } from '../../accounts/key.ts'
import {
  domainAllowed,
  FORM_SCOPE,
  ipAllowed,
  isForTestKeys,
  permits,
  type Scope,
} from '../../accounts/key-rights.ts'
import { getCachedKey, isRevoked } from '../../accounts/key-store.ts'
import { findPrincipal, type Principal } from '../../accounts/people/principal.ts'
import { findPlan } from '../../accounts/plan.ts'
import type { Capacity } from '../capacity.ts'
import type { Admitted, Caller, DashboardSession, Env } from '../context.ts'
import { type ApiCode, ApiError } from '../errors/api-error.ts'
import { toApiError } from '../errors/errors.ts'
import { allowOrigin } from '../headers.ts'
import type { LastUsed } from '../last-used.ts'
import type { ServiceDeps } from '../service.ts'
import { type SandboxDeps, sandboxDelay } from '../verify/sandbox.ts'
import { holdPlace, leavePlaces } from './admission.ts'
import { type BodyRule, checkBodyHeaders, readJson } from './body.ts'
import { type IdempotencyDeps, idempotent, isAnswered } from './idempotency.ts'
import { admit, outOfCredits, type RateLimitDeps } from './rate-limit.ts'
import type { Counts } from './rate-limit-buckets.ts'
import { authenticateLink, type LinkDeps } from './signed-link.ts'

type GuardDeps = Pick<
  ServiceDeps,
  'clock' | 'database' | 'isStopping' | 'priority' | 'settings'
> & {
  readonly capacity: Capacity
  readonly lastUsed: LastUsed
  readonly inFlightKeys: Set<string>
} & IdempotencyDeps &
  RateLimitDeps &
  LinkDeps &
  SandboxDeps

export type GuardRule = {
  /** The scope that the key must have; null: any key will do, because the handler checks more. */
  readonly scope: Scope | null
  /**
   * The kind that the request is counted as, in addition to the requests of its key. A handler of
   * `bulk` counts its list when it creates it.
   */
  readonly counts: Counts
  /** False: the handler counts the request. */
  readonly isCounted?: boolean
  /** Largest body in bytes. */
  readonly bodyMax: number
  /** See `BodyRule.valuesMax`. */
  readonly valuesMax?: number | undefined
  /** Whether a signed link can replace the key. */
  readonly takesLinks?: boolean
  /** `stream`: the handler reads the body. */
  readonly body?: 'json' | 'stream'
  /** Whether the body may be compressed with gzip. */
  readonly gzip?: boolean
  /**
   * Bytes of the largest body with an answer that may be free, since all of it is cached. Without
   * credits a larger body is refused before it is read; if omitted, every body is.
   */
  readonly freeBodyMax?: number | undefined
  /** Holds places of the account before the body is read. Throws ApiError if there is none. */
  readonly beforeBody?: ((c: Context<Env>) => void) | undefined
  /** Whether the route takes an Idempotency-Key. */
  readonly idempotent?: boolean | undefined
  /** Middleware that runs before the key is checked. */
  readonly beforeKey?: readonly MiddlewareHandler<Env>[] | undefined
  /** Middleware that runs after the key is checked and the body is read. */
  readonly afterKey?: readonly MiddlewareHandler<Env>[] | undefined
}

/** Creates the middleware of a route. */
export type Guard = (rule: GuardRule) => MiddlewareHandler<Env>[]

/**
 * Returns the guard of all routes: it authenticates the caller, checks permissions and limits,
 * reads the body, delays the sandbox and repeats stored responses.
 */
export const createGuard =
  (service: GuardDeps): Guard =>
  rule => {
    const { counts, body } = rule
    const delay: MiddlewareHandler<Env> = async (c, next) => {
      if (c.get('sandbox')) await sandboxDelay(c, service)
      await next()
    }
    return [
      ...(rule.beforeKey ?? []),
      ...requireKey(service, rule),
      ...(rule.afterKey ?? []),
      ...(counts === null ? [] : [delay]),
      // A form has a fingerprint only after it was read.
      ...(rule.idempotent ? [idempotent(service, { fingerprintLater: body === 'stream' })] : []),
    ]
  }

function requireKey(service: GuardDeps, rule: GuardRule): MiddlewareHandler<Env>[] {
  const { capacity, lastUsed } = service
  const bodyRule = {
    bytesMax: rule.bodyMax,
    kind: rule.body ?? 'json',
    gzip: rule.gzip ?? false,
    valuesMax: rule.valuesMax,
  } as const
  const { counts } = rule
  const isVerification = counts !== null
  return [
    ...(isVerification ? [admitVerifying(service)] : []),
    async (c, next) => {
      if (c.req.method === 'POST' && service.isStopping()) throw stopping()
      const caller = await identifyCaller(c, service, rule)
      c.set('caller', caller)
      lastUsed.note(caller.key.id)
      checkPermission(c, caller, rule.scope)
      if (rule.scope === FORM_SCOPE) allowOrigin(c)
      c.set('sandbox', isSandbox(c, rule, caller))
      checkBodyHeaders(c, bodyRule)
      if (isVerification) {
        const authorization = c.req.header('Authorization')
        holdPlace(c, capacity.startOfAccount(caller.account.id, authorization))
      }
      const counted = isVerification && !(await isAnswered(c, service))
      const admitted =
        rule.isCounted === false
          ? NOT_COUNTED
          : await admit(c, service, {
              caller,
              counts: counted ? counts : null,
              mayBeFree: mayBeFree(c, rule),
            })
      c.set('admitted', admitted)
      rule.beforeBody?.(c)
      if (bodyRule.kind === 'json') await readAdmitted(c, service, { rule, bodyRule, admitted })
      if (!counted) return next()
      const endRequest = rule.counts !== 'bulk' ? service.priority.startRequest() : () => {}
      try {
        await next()
        if (admitted.noCredits !== null && isCode(c.error, 'quota_exceeded')) admitted.uncount()
        else if (isRefused(c)) admitted.uncountList()
      } finally {
        endRequest()
      }
    },
  ]
}

/** Counts a request until it is answered or `leavePlaces` is called. */
const admitVerifying =
  ({ capacity }: GuardDeps): MiddlewareHandler<Env> =>
  async (c, next) => {
    const end = capacity.startVerifying()
    holdPlace(c, () => {
      end()
      if (c.env?.outgoing !== undefined) capacity.admissions.leave(c.env.outgoing)
    })
    try {
      await next()
    } finally {
      leavePlaces(c)
    }
  }

/** The handle of a request that is counted elsewhere. */
const NOT_COUNTED: Admitted = {
  noCredits: null,
  countList: async () => {},
  countAddresses: async () => {},
  uncountList() {},
  uncount() {},
}

async function identifyCaller(
  c: Context<Env>,
  service: GuardDeps,
  { takesLinks }: GuardRule,
): Promise<Caller> {
  if (takesLinks && c.req.query('signature') !== undefined) {
    c.set('isLink', true)
    return toCaller(service, await authenticateLink(c, service))
  }
  const session = c.env?.session
  return session === undefined
    ? authenticate(service, c.req.header('Authorization'))
    : authenticateSession(service, session)
}

function checkPermission(c: Context<Env>, { account, key }: Caller, scope: Scope | null): void {
  if (!ipAllowed(key, c.get('ip'))) {
    throw new ApiError(
      'ip_restricted',
      'This API key does not allow requests from this IP address.',
    )
  }
  const site = c.req.header('Origin') ?? c.req.header('Referer') ?? null
  if (!domainAllowed(key, site)) {
    throw new ApiError(
      'domain_restricted',
      'This API key does not allow requests from this domain.',
    )
  }
  if (scope === null) return
  if (!permits(key.scopes, scope)) {
    throw new ApiError('insufficient_scope', `This API key does not have the scope ${scope}.`)
  }
  if (key.isTest && !isForTestKeys(scope)) {
    throw new ApiError(
      'insufficient_scope',
      `A test key cannot use the scope ${scope}. Use a live key.`,
    )
  }
  if (scope === 'accounts:write' && account.operator !== 1) {
    throw new ApiError(
      'insufficient_scope',
      'Only keys of an admin account can manage accounts. To make an account an admin, run "ev accounts set-admin".',
    )
  }
}

/** A body without Content-Length may be short. */
const mayBeFree = ({ req }: Context<Env>, { freeBodyMax }: GuardRule) =>
  freeBodyMax !== undefined && Number(req.header('Content-Length') ?? 0) <= freeBodyMax

const isCode = (error: unknown, code: ApiCode) =>
  error !== undefined && toApiError(error).code === code

type Reading = {
  readonly rule: GuardRule
  readonly bodyRule: BodyRule
  readonly admitted: Admitted
}

async function readAdmitted(
  c: Context<Env>,
  service: GuardDeps,
  { rule, bodyRule, admitted }: Reading,
): Promise<void> {
  const { noCredits } = admitted
  const bytesMax = noCredits === null ? rule.bodyMax : (rule.freeBodyMax ?? rule.bodyMax)
  try {
    await readJson(c, { ...bodyRule, bytesMax })
  } catch (error) {
    if (noCredits === null || !isCode(error, 'payload_too_large')) throw error
    admitted.uncount()
    throw outOfCredits(service, noCredits.limit)
  }
}

/**
 * Whether the request is removed from the limit of lists. A request of a client that disconnected
 * (408) has caused probes and still counts.
 */
function isRefused({ res: { status } }: Context<Env>): boolean {
  return (status >= 400 && status < 500 && status !== 408) || status === 507
}

/** Whether requests can be simulated; those that manage keys and accounts never are. */
export const takesSandbox = (scope: Scope | null): boolean =>
  scope === null || !NEVER_SIMULATED.includes(scope)

const NEVER_SIMULATED: readonly Scope[] = ['keys:write', 'account:write', 'accounts:write']

function isSandbox(c: Context<Env>, { scope }: GuardRule, { key }: Caller): boolean {
  if (key.isTest) return takesSandbox(scope)
  const value = c.req.header('X-EV-Sandbox')?.trim().toLowerCase()
  if (value === undefined || value === 'false' || !takesSandbox(scope)) return false
  if (value === 'true') return true
  // A misspelled value must not cause a charge.
  throw new ApiError('invalid_request', 'X-EV-Sandbox must be true or false.')
}

const stopping = () =>
  new ApiError('service_unavailable', 'The service is stopping. Try again.', { retryAfterS: 5 })

/**
 * Authenticates the key in `Authorization: Bearer …`. Only a caller with the secret of a key learns
 * that it has expired or was revoked.
 */
async function authenticate(
  service: GuardDeps,
  authorization: string | undefined,
): Promise<Caller> {
  const text = BEARER.exec(authorization ?? '')?.[1]
  // A mistyped or invented key is refused by its checksum, without a query.
  if (text === undefined || !isWellFormed(text)) throw unauthenticated()
  const { database, clock } = service
  const hash = hashSecret(text)
  const found = await getCachedKey(database, hash)
  if (found === null) throw (await isRevoked(database, hash)) ? revoked() : unauthenticated()
  const now = clock.now()
  if (isExpired(found.key.expiresAt, now) || isExpired(found.secretExpiresAt, now)) throw expired()
  return toCaller(service, { ...found, person: null })
}

/**
 * Authenticates the key or the person of a dashboard session, which is read at each request: a key
 * that was revoked or lost the scope `dashboard` is refused at once, and so is a removed person.
 */
async function authenticateSession(
  service: GuardDeps,
  { keyId, secretExpiresAt }: DashboardSession,
): Promise<Caller> {
  const found = await findPrincipal(service.database, keyId)
  const now = service.clock.now()
  if (found === null || isExpired(found.key.expiresAt, now)) throw signedOut()
  if (isExpired(secretExpiresAt, now)) throw signedOut()
  if (!permits(found.key.scopes, 'dashboard')) throw signedOut()
  return toCaller(service, { ...found, secretExpiresAt })
}

const toCaller = ({ settings }: GuardDeps, { account, ...found }: Principal): Caller => ({
  account,
  ...found,
  plan: findPlan(settings.plans, account.plan),
})

const signedOut = () =>
  new ApiError(
    'authentication_error',
    'The API key of this session was revoked, has expired, or no longer has access to the dashboard. Sign in again.',
  )

const unauthenticated = () =>
  new ApiError(
    'authentication_error',
    'Missing or invalid API key. Send the header Authorization: Bearer <API_KEY>.',
  )

const expired = () =>
  new ApiError('key_expired', 'This API key has expired or was rotated. Use a valid key.')

const revoked = () => new ApiError('key_revoked', 'This API key was revoked. Use another key.')

/** The name of the scheme is case-insensitive (RFC 9110 §11.1). */
const BEARER = /^Bearer +([\w-]{1,128}) *$/i

const isExpired = (at: number | null, now: number) => at !== null && at <= now
