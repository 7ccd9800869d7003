import type { Context, MiddlewareHandler } from 'hono'
import { hashSecret, isWellFormed } from '../../accounts/key.ts'
import { getCachedKey } from '../../accounts/key-cache.ts'
import { domainAllowed, ipAllowed } from '../../accounts/key-restrictions.ts'
import { type FoundKey, findKeyById, isRevoked } from '../../accounts/key-store.ts'
import { findPlan } from '../../accounts/plan.ts'
import { permits, type Scope } from '../../accounts/scope.ts'
import type { AskingSession, Caller, Env } from '../context.ts'
import { type ApiCode, ApiError } from '../errors/api-error.ts'
import { toApiError } from '../errors/errors.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'
import { admitVerifying } from './admission.ts'
import { type BodyRule, checkBodyHeaders, readJson } from './body.ts'
import { isAnswered } from './idempotency.ts'
import { type Admitted, admit, outOfCredits } from './rate-limit.ts'
import type { Counts } from './rate-limit-buckets.ts'

export type GuardRule = {
  /** What a key needs. */
  readonly scope: Scope
  /** As what the request is counted, beside the requests of its key. */
  readonly counts: Counts
  /** Bytes. */
  readonly bodyMax: number
  /** `stream`: the handler reads the body. */
  readonly body?: 'json' | 'stream'
  /**
   * Bytes of the largest body whose answer may cost no credit, as all of it is remembered. Without credits a larger one
   * is refused before it is read; left out: all are.
   */
  readonly freeBodyMax?: number
}

/** Stands before a path: who asks, whether they may, whether there is room, and what they sent. */
export function requireKey(service: Service, rule: GuardRule): MiddlewareHandler<Env>[] {
  const state = stateOf(service)
  const bodyRule = { bytesMax: rule.bodyMax, kind: rule.body ?? 'json' } as const
  const { counts } = rule
  const verifies = counts !== null
  return [
    ...(verifies ? [admitVerifying(service)] : []),
    async (c, next) => {
      if (c.req.method === 'POST' && service.isStopping()) throw stopping()
      const caller = await identifyCaller(c, service)
      c.set('caller', caller)
      state.touches.note(caller.key.id)
      checkPermission(c, caller, rule.scope)
      c.set('sandbox', isSandbox(c, rule))
      checkBodyHeaders(c, bodyRule)
      const counted = verifies && !(await isAnswered(c, service))
      const admitted = await admit(c, service, {
        ...{ caller, counts: counted ? counts : null },
        mayBeFree: mayBeFree(c, rule),
      })
      if (bodyRule.kind === 'json') await readAdmitted(c, service, { rule, bodyRule, admitted })
      if (!counted) return next()
      const endRequest = rule.counts === 'single' ? service.priority.startRequest() : () => {}
      try {
        await next()
        if (admitted.noCredits !== null && isCode(c.error, 'quota_exceeded')) admitted.uncount()
        else if (isRefused(c) || c.get('isDryRun')) admitted.noList()
      } finally {
        endRequest()
      }
    },
  ]
}

function identifyCaller(c: Context<Env>, service: Service): Promise<Caller> {
  const session = c.env?.session
  return session === undefined
    ? authenticate(service, c.req.header('Authorization'))
    : authenticateSession(service, session)
}

function checkPermission(c: Context<Env>, { key }: Caller, scope: Scope): void {
  if (!ipAllowed(key, c.get('ip'))) {
    throw new ApiError('ip_restricted', 'This API key may not be used from this IP address')
  }
  const site = c.req.header('Origin') ?? c.req.header('Referer') ?? null
  if (!domainAllowed(key, site)) {
    throw new ApiError('domain_restricted', 'This API key may not be used from this domain')
  }
  if (!permits(key.scopes, scope)) {
    throw new ApiError('insufficient_scope', `This API key lacks the scope ${scope}`)
  }
}

/** A body that does not say how long it is may be short. */
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
  service: Service,
  { rule, bodyRule, admitted }: Reading,
): Promise<void> {
  const { noCredits } = admitted
  const bytesMax = noCredits === null ? rule.bodyMax : (rule.freeBodyMax ?? rule.bodyMax)
  try {
    await readJson(c, { ...bodyRule, bytesMax })
  } catch (error) {
    if (noCredits === null || !isCode(error, 'payload_too_large')) {
      admitted.noList()
      throw error
    }
    admitted.uncount()
    throw outOfCredits(service, noCredits.limit)
  }
}

/** Who asks wrongly may ask again; whose client went away had mail servers asked all the same (408). */
function isRefused({ res: { status } }: Context<Env>): boolean {
  return (status >= 400 && status < 500 && status !== 408) || status === 507
}

/** Keys are not simulated. */
function isSandbox(c: Context<Env>, { scope }: GuardRule): boolean {
  const asked = c.req.header('X-EV-Sandbox')?.trim().toLowerCase()
  if (asked === undefined || asked === 'false' || scope === 'keys:write') return false
  if (asked === 'true') return true
  // Whoever means the sandbox should not be charged for a misspelling.
  throw new ApiError('invalid_request', 'X-EV-Sandbox must be true or false')
}

const stopping = () =>
  new ApiError('service_unavailable', 'The service is stopping: try again', { retryAfterS: 5 })

/** Who asks, by the key in `Authorization: Bearer …`. Only who has the text of a key is told that it expired or was revoked. */
async function authenticate(service: Service, authorization: string | undefined): Promise<Caller> {
  const text = BEARER.exec(authorization ?? '')?.[1]
  // A key that is mistyped or made up is told without asking the database.
  if (text === undefined || !isWellFormed(text)) throw unauthenticated()
  const { database, clock } = service
  const hash = hashSecret(text)
  const found = await getCachedKey(database, hash)
  if (found === null) throw (await isRevoked(database, hash)) ? revoked() : unauthenticated()
  const now = clock.now()
  if (isDone(found.key.expiresAt, now) || isDone(found.secretExpiresAt, now)) throw expired()
  return callerOf(service, found)
}

/**
 * Who asks, by the key of a session of the dashboard, which knows whose it is. Each time the key is looked up anew:
 * one that was revoked or may no longer sign in is refused at once, whoever changed it.
 */
async function authenticateSession(
  service: Service,
  { keyId, secretExpiresAt }: AskingSession,
): Promise<Caller> {
  const found = await findKeyById(service.database, keyId)
  const now = service.clock.now()
  if (found === null || isDone(found.key.expiresAt, now)) throw signedOut()
  if (isDone(secretExpiresAt, now)) throw signedOut()
  if (!permits(found.key.scopes, 'dashboard')) throw signedOut()
  return callerOf(service, { ...found, secretExpiresAt })
}

const callerOf = ({ settings }: Service, { account, ...found }: FoundKey): Caller => ({
  ...{ account, ...found },
  plan: findPlan(settings.plans, account.plan),
})

const signedOut = () =>
  new ApiError(
    'authentication_error',
    'The API key of this session was revoked, has expired, or may no longer sign in: sign in again',
  )

const unauthenticated = () =>
  new ApiError(
    'authentication_error',
    'Missing or invalid API key: send Authorization: Bearer <API_KEY>',
  )

const expired = () =>
  new ApiError('key_expired', 'This API key has expired or was replaced: use a current one')

const revoked = () => new ApiError('key_revoked', 'This API key was revoked: use another one')

/** The name of the scheme is known in any case (RFC 9110 §11.1). */
const BEARER = /^Bearer +([\w-]{1,128}) *$/i

const isDone = (at: number | null, now: number) => at !== null && at <= now
