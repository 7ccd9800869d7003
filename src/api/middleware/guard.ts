import type { Context, Handler } from 'hono'
import { hashSecret, isWellFormed } from '../../accounts/key.ts'
import {
  domainAllowed,
  FORM_SCOPE,
  ipAllowed,
  isExpired,
  isForTestKeys,
  permits,
  type Scope,
} from '../../accounts/key-rights.ts'
import { type FoundKey, getCachedKey, isRevoked } from '../../accounts/key-store.ts'
import { findPrincipal, type Principal } from '../../accounts/people/principal.ts'
import { lacksSecondFactor } from '../../accounts/people/second-factor.ts'
import { findPlan } from '../../accounts/plan.ts'
import type { Capacity } from '../capacity.ts'
import type { Admitted, Caller, DashboardSession, Env, Replay } from '../context.ts'
import { type ApiCode, STATUS } from '../errors/api-error.ts'
import { toApiError } from '../errors/errors.ts'
import { invalidRequest, requestError } from '../errors/request-errors.ts'
import { allowOrigin, getHeader } from '../headers.ts'
import type { LastUsed } from '../last-used.ts'
import type { ServiceDeps } from '../service.ts'
import { hasDelay, type SandboxDeps, sandboxDelay } from '../verify/sandbox.ts'
import { holdPlace, leavePlaces } from './admission.ts'
import { type BodyRule, checkBodyHeaders, readJson } from './body.ts'
import {
  findReplay,
  type IdempotencyDeps,
  isIdempotent,
  type KeysInFlight,
  lockReplay,
  repeatStored,
} from './idempotency.ts'
import { admit, outOfCredits, type RateLimitDeps } from './rate-limit.ts'
import type { Counts } from './rate-limit-buckets.ts'
import { noteError, type RefusedRequests } from './refused-requests.ts'
import { type RouteTable, toRoutePath } from './route-table.ts'
import { authenticateLink, type LinkDeps } from './signed-link.ts'
import { createValidator, type RequestSchemas } from './validate.ts'

type GuardDeps = Pick<ServiceDeps, 'clock' | 'database' | 'log' | 'priority' | 'settings'> & {
  readonly capacity: Capacity
  readonly lastUsed: LastUsed
  readonly keysInFlight: KeysInFlight
  readonly refusedRequests: RefusedRequests
  readonly routes: RouteTable
} & IdempotencyDeps &
  RateLimitDeps &
  LinkDeps &
  SandboxDeps

export type GuardRule = {
  /** Method and path, such as `POST /v1/verify/single`. */
  readonly target: string
  /** The scope that the key must have; null: any key will do, because the handler checks more. */
  readonly scope: Scope | null
  /**
   * The kind that the request is counted as, in addition to the requests of its key. A handler of
   * `bulk` counts its list when it creates it.
   */
  readonly counts: Counts
  /** False: the handler counts the request. */
  readonly isCounted?: boolean
  /** Whether the request waits for its turn as a verification does, although `counts` is null. */
  readonly isVerification?: boolean
  /** The rule of the body. A body of the kind `stream` is read by the handler. */
  readonly body: BodyRule
  /** Whether the body is a list, which takes longer to arrive. */
  readonly takesList?: boolean | undefined
  /**
   * A header that can have the key, without a scheme. `Authorization` then needs no scheme either.
   */
  readonly keyHeader?: Lowercase<string>
  /** Whether a signed link can replace the key. */
  readonly takesLinks?: boolean
  /**
   * Bytes of the largest body with an answer that may be free, since all of it is cached. Without
   * credits a larger body is refused before it is read; if omitted, every body is.
   */
  readonly freeBodyMax?: number | undefined
  /** Whether the route takes an Idempotency-Key. */
  readonly idempotent?: boolean | undefined
  /** Null: the handler validates the request. */
  readonly schemas: RequestSchemas | null
  /** Runs before the key is checked. */
  readonly beforeKey?: ((c: Context<Env>) => void) | undefined
  /** Holds places of the account before the body is read. Throws ApiError if there is none. */
  readonly beforeBody?: ((c: Context<Env>) => void) | undefined
  /** Runs after the body is read, before a stored response is repeated. */
  readonly afterBody?: ((c: Context<Env>) => void | Promise<void>) | undefined
}

/** Returns a function that protects the handler of a route by its rule. */
export type Guard = (rule: GuardRule) => Protect

export type Protect = (handler: Handler<Env>) => Handler<Env>

/**
 * Returns the guard of all routes. In this order, and each once, it
 *
 * 1. takes a place of the verifications in flight, if the route verifies addresses;
 * 2. identifies the caller and checks the permissions of its key;
 * 3. checks the headers of the body, and takes a place of the account;
 * 4. looks for the stored response of the Idempotency-Key, which is free;
 * 5. checks credits and counts the request in its limits;
 * 6. reads the body;
 * 7. delays a request of the sandbox, as it asks for;
 * 8. repeats the stored response, or locks the Idempotency-Key;
 * 9. validates the query, the path and the body by their schemas;
 * 10. runs the handler.
 *
 * A request that the caller has no right to becomes an entry of the audit log. A step that has what
 * it needs returns its result instead of a promise, so that most requests wait only for their counts.
 */
export const createGuard =
  (service: GuardDeps): Guard =>
  rule => {
    const { counts, takesList } = rule
    const isVerification = counts !== null || rule.isVerification
    if (isVerification || takesList) service.routes.add(rule.target, { isVerification, takesList })
    const validate = rule.schemas === null ? () => {} : createValidator(rule.schemas)
    const path = toRoutePath(rule.target.slice(rule.target.indexOf(' ') + 1))
    return handler => {
      const route: GuardedRoute = { ...rule, validate, handler }
      return async c => {
        c.set('route', path)
        try {
          rule.beforeKey?.(c)
          if (counts !== null) holdVerifying(c, service)
          return await passGuard(c, service, route)
        } catch (error) {
          const noted = noteError(c, service, { target: rule.target, error })
          if (noted !== null) await noted
          throw error
        } finally {
          leavePlaces(c)
        }
      }
    }
  }

type GuardedRoute = GuardRule & {
  readonly validate: (c: Context<Env>) => void
  readonly handler: Handler<Env>
}

async function passGuard(
  c: Context<Env>,
  service: GuardDeps,
  rule: GuardedRoute,
): Promise<Response> {
  const known = checkCaller(c, service, rule)
  const caller = known instanceof Promise ? await known : known
  checkBodyHeaders(c, rule.body)
  if (rule.counts !== null) {
    const { id } = caller.account
    holdPlace(c, service.capacity.startOfAccount(id, readSentKey(c, rule)))
  }
  const replay = rule.idempotent && isIdempotent(c) ? await findReplay(c, service) : null
  const counts = replay?.stored ? null : rule.counts
  const admitted =
    rule.isCounted === false
      ? NOT_COUNTED
      : await admit(c, service, { caller, counts, mayBeFree: mayBeFree(c, rule) })
  c.set('admitted', admitted)
  rule.beforeBody?.(c)
  if (rule.body.kind === 'json') {
    const reading = readAdmitted(c, service, { rule, admitted })
    if (reading instanceof Promise) await reading
  }
  const endRequest = counts === null || counts === 'bulk' ? null : service.priority.startRequest()
  try {
    const checking = rule.afterBody?.(c)
    if (checking instanceof Promise) await checking
    if (rule.counts !== null && c.get('sandbox') && hasDelay(c)) await sandboxDelay(c, service)
    const admission = { rule, counts, admitted }
    if (replay !== null) return await answerOnce(c, service, replay, admission)
    return await handle(c, admission)
  } finally {
    endRequest?.()
  }
}

type Admission = {
  readonly rule: GuardedRoute
  /** As what the request is counted. */
  readonly counts: Counts
  readonly admitted: Admitted
}

/** Repeats the stored response of an Idempotency-Key, or runs the handler while the key is locked. */
async function answerOnce(
  c: Context<Env>,
  service: GuardDeps,
  replay: Replay,
  admission: Admission,
): Promise<Response> {
  const unlock = await lockReplay(c, service, replay)
  try {
    // A form has a fingerprint only after its handler has read it.
    const isKnown = admission.rule.body.kind === 'json'
    const repeated = isKnown ? repeatStored(c, service, c.get('body') ?? EMPTY) : null
    return repeated ?? (await handle(c, admission))
  } finally {
    unlock()
  }
}

/**
 * Validates a request and runs its handler. Removes a refused request from the limits in which it
 * was counted for an effect.
 */
async function handle(c: Context<Env>, { rule, counts, admitted }: Admission): Promise<Response> {
  try {
    rule.validate(c)
    const response: Response = await rule.handler(c, endOfChain)
    if (counts !== null && isRefused(response.status)) admitted.uncountList()
    return response
  } catch (error) {
    if (counts === null) throw error
    const { code } = toApiError(error)
    if (admitted.noCredits !== null && code === 'quota_exceeded') admitted.uncount()
    else if (isRefused(STATUS[code])) admitted.uncountList()
    throw error
  }
}

/** No handler of a guarded route calls the next one. */
const endOfChain = async () => {}

const EMPTY = new Uint8Array()

/** Counts a request as a verification until it is answered or `leavePlaces` is called. */
function holdVerifying(c: Context<Env>, { capacity }: GuardDeps): void {
  const end = capacity.startVerifying()
  holdPlace(c, () => {
    end()
    if (c.env?.outgoing !== undefined) capacity.admissions.leave(c.env.outgoing)
  })
}

/** Identifies the caller, and checks whether its key permits the request. */
function checkCaller(
  c: Context<Env>,
  service: GuardDeps,
  rule: GuardRule,
): Caller | Promise<Caller> {
  const found = identifyCaller(c, service, rule)
  const check = (caller: Caller) => {
    c.set('caller', caller)
    service.lastUsed.note(caller.key.id)
    checkPermission(c, caller, rule.scope)
    if (rule.scope === FORM_SCOPE) allowOrigin(c)
    c.set('sandbox', isSandbox(c, rule, caller))
    return caller
  }
  return found instanceof Promise ? found.then(check) : check(found)
}

/** The handle of a request that is counted elsewhere. */
const NOT_COUNTED: Admitted = {
  noCredits: null,
  countList: async () => {},
  countAddresses: async () => {},
  uncountList() {},
  uncount() {},
}

function identifyCaller(
  c: Context<Env>,
  service: GuardDeps,
  rule: GuardRule,
): Caller | Promise<Caller> {
  if (rule.takesLinks && c.req.query('signature') !== undefined) {
    c.set('isLink', true)
    return authenticateLink(c, service).then(found => toCaller(service, found, found.person))
  }
  const session = c.env?.session
  return session === undefined
    ? authenticate(service, readSentKey(c, rule), rule)
    : authenticateSession(service, session)
}

function checkPermission(
  c: Context<Env>,
  { account, key, person }: Caller,
  scope: Scope | null,
): void {
  const ip = c.get('ip')
  if (!ipAllowed(key, ip)) {
    throw requestError('ip_not_allowed', { ip })
  }
  const site = getHeader(c, 'origin') ?? getHeader(c, 'referer') ?? null
  if (!domainAllowed(key, site)) {
    throw requestError('domain_not_allowed', { site })
  }
  if (scope === null) return
  if (!permits(key.scopes, scope)) {
    throw requestError('scope_missing', { scope, isPerson: person !== null })
  }
  if (key.isTest && !isForTestKeys(scope)) {
    throw requestError('test_key', { scope })
  }
  if (scope === 'accounts:write' && account.operator !== 1) {
    throw requestError('admin_required')
  }
}

/** A body without Content-Length may be short. */
const mayBeFree = (c: Context<Env>, { freeBodyMax }: GuardRule) =>
  freeBodyMax !== undefined && Number(getHeader(c, 'content-length') ?? 0) <= freeBodyMax

const isCode = (error: unknown, code: ApiCode) =>
  error !== undefined && toApiError(error).code === code

type Reading = { readonly rule: GuardRule; readonly admitted: Admitted }

function readAdmitted(
  c: Context<Env>,
  service: GuardDeps,
  { rule, admitted }: Reading,
): void | Promise<void> {
  return admitted.noCredits === null
    ? readJson(c, rule.body)
    : readFree(c, service, { rule, admitted, limit: admitted.noCredits.limit })
}

/** Reads a body whose answer may be free. A larger one would cost credits, of which none are left. */
async function readFree(
  c: Context<Env>,
  service: GuardDeps,
  { rule, admitted, limit }: Reading & { readonly limit: number },
): Promise<void> {
  try {
    await readJson(c, { ...rule.body, bytesMax: rule.freeBodyMax ?? rule.body.bytesMax })
  } catch (error) {
    if (!isCode(error, 'payload_too_large')) throw error
    admitted.uncount()
    throw outOfCredits(service, limit)
  }
}

/**
 * Whether the request is removed from the limit of lists. A request of a client that disconnected
 * (408) has caused probes and still counts.
 */
const isRefused = (status: number): boolean =>
  (status >= 400 && status < 500 && status !== 408) || status === 507

/** Whether requests can be simulated; those that manage keys and accounts never are. */
export const takesSandbox = (scope: Scope | null): boolean =>
  scope === null || !NEVER_SIMULATED.includes(scope)

const NEVER_SIMULATED: readonly Scope[] = [
  'keys:write',
  'people:write',
  'account:write',
  'accounts:write',
]

function isSandbox(c: Context<Env>, { scope }: GuardRule, { key }: Caller): boolean {
  if (key.isTest) return takesSandbox(scope)
  const value = getHeader(c, 'x-ev-sandbox')?.trim().toLowerCase()
  if (value === undefined || value === 'false' || !takesSandbox(scope)) return false
  if (value === 'true') return true
  // A misspelled value must not cause a charge.
  throw invalidRequest('X-EV-Sandbox must be true or false.')
}

/** Returns the value of the header that has the key of a request. */
const readSentKey = (c: Context<Env>, { keyHeader }: GuardRule): string | undefined =>
  (keyHeader === undefined ? undefined : getHeader(c, keyHeader)) ?? getHeader(c, 'authorization')

/**
 * Authenticates the key in `Authorization: Bearer …`, or in the header of the route. Only a caller
 * with the secret of a key learns that it has expired or was revoked.
 */
function authenticate(
  service: GuardDeps,
  sent: string | undefined,
  { keyHeader }: GuardRule,
): Caller | Promise<Caller> {
  const text = (keyHeader === undefined ? BEARER : BEARER_OR_BARE).exec(sent ?? '')?.[1]
  // A mistyped or invented key is refused by its checksum, without a query.
  if (text === undefined || !isWellFormed(text))
    throw requestError('key_missing', { header: keyHeader })
  const { database } = service
  const hash = hashSecret(text)
  const found = getCachedKey(database, hash)
  if (!(found instanceof Promise)) return checkExpiry(service, found)
  return found.then(async key => {
    if (key !== null) return checkExpiry(service, key)
    throw (await isRevoked(database, hash))
      ? requestError('key_revoked')
      : requestError('key_missing', { header: keyHeader })
  })
}

function checkExpiry(service: GuardDeps, found: FoundKey): Caller {
  const now = service.clock.now()
  if (isExpired(found.key.expiresAt, now) || isExpired(found.secretExpiresAt, now))
    throw requestError('key_expired')
  return toCaller(service, found, null)
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
  if (found === null || isExpired(found.key.expiresAt, now)) throw requestError('session_ended')
  if (isExpired(secretExpiresAt, now)) throw requestError('session_ended')
  if (!permits(found.key.scopes, 'dashboard')) throw requestError('session_ended')
  const { account, person } = found
  if (person === null) {
    if (account.two_factor_required === 1) throw requestError('session_ended')
  } else if (lacksSecondFactor(account, person)) {
    throw requestError('second_factor_missing')
  }
  return toCaller(service, { key: found.key, account, secretExpiresAt }, person)
}

const toCaller = (
  { settings }: GuardDeps,
  { account, key, secretExpiresAt }: FoundKey,
  person: Principal['person'],
): Caller => ({
  account,
  key,
  person,
  secretExpiresAt,
  plan: findPlan(settings.plans, account.plan),
})

/** The name of the scheme is case-insensitive (RFC 9110 §11.1). */
const BEARER = /^Bearer +([\w-]{1,128}) *$/i
const BEARER_OR_BARE = /^(?:Bearer +)?([\w-]{1,128}) *$/i
