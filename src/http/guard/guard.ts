import type { Context, MiddlewareHandler } from 'hono'
import { domainAllowed, ipAllowed } from '../../account/restriction.ts'
import { permits, type Scope } from '../../account/scope.ts'
import type { Caller, Env } from '../context.ts'
import { ApiError } from '../error/api-error.ts'
import { type Admitted, admit } from '../limit/admit.ts'
import type { Counts } from '../limit/buckets.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'
import { authenticate, authenticateSession } from './auth.ts'
import { checkBodyHeaders, readJson } from './body.ts'
import { isAnswered } from './idempotent.ts'

export type GuardRule = {
  /** What a key needs. */
  readonly scope: Scope
  /** As what the request is counted, beside the requests of its key. */
  readonly counts: Counts
  /** Bytes. */
  readonly bodyMax: number
  /** `stream`: the handler reads the body. */
  readonly body?: 'json' | 'stream'
}

/** More verifications at a time are refused at once, as nobody would wait for their answers. */
export const VERIFYING_MAX = 1_000

/** Stands before a path: who asks, whether they may, whether there is room, and what they sent. */
export function guard(service: Service, rule: GuardRule): MiddlewareHandler<Env>[] {
  const state = stateOf(service)
  const bodyRule = { bytesMax: rule.bodyMax, kind: rule.body ?? 'json' } as const
  return [
    async (c, next) => {
      if (c.req.method === 'POST' && service.isStopping()) throw stopping()
      const caller = await whoAsks(c, service)
      c.set('caller', caller)
      state.touches.note(caller.key.id)
      checkPermission(c, caller, rule.scope)
      c.set('sandbox', isSandbox(c, rule))
      checkBodyHeaders(c, bodyRule)
      const counted = rule.counts !== null && !(await isAnswered(c, service))
      if (counted && state.verifying >= VERIFYING_MAX) throw crowded(service)
      const admitted = await admit(c, service, { caller, counts: counted ? rule.counts : null })
      if (bodyRule.kind === 'json') await readJson(c, bodyRule).catch(refusing(admitted))
      if (!counted) return next()
      state.verifying++
      try {
        await next()
        if (isRefused(c) || c.get('isDryRun')) admitted.noList()
      } finally {
        state.verifying--
      }
    },
  ]
}

function whoAsks(c: Context<Env>, service: Service): Promise<Caller> {
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

const refusing = (admitted: Admitted) => (error: unknown) => {
  admitted.noList()
  throw error
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

function crowded(service: Service): ApiError {
  stateOf(service).metrics.refused('crowd')
  const sentence = `${VERIFYING_MAX} verifications are under way: try again`
  return new ApiError('service_unavailable', sentence, { retryAfterS: 1 })
}
