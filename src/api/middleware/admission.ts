import type { MiddlewareHandler } from 'hono'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'
import { type State, stateOf } from '../state.ts'

/** More verifications at a time are refused at once, as nobody would wait for their answers. */
export const VERIFYING_MAX = 1_000

/** What the app refuses of a request, by what Node knows of it; null: nothing. */
export type OverloadError = (request: {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly socket: object
}) => ApiError | null

/** Paths that verify. */
const VERIFY = /^\/v1\/verify\b/

/** Refuses requests above `VERIFYING_MAX` before the app is asked: most of a crowd is refused, and waits for this. */
export function overloadError(service: Service): OverloadError {
  const state = stateOf(service)
  return ({ method, url = '', socket }) =>
    method === 'POST' && VERIFY.test(url) ? faultNow(state, socket) : null
}

/** The same for what comes to the app, and counts those that it lets in until they are answered. */
export function admitVerifying(service: Service): MiddlewareHandler<Env> {
  const state = stateOf(service)
  return async (c, next) => {
    const fault = faultNow(state, c.env?.incoming?.socket)
    if (fault !== null) throw fault
    state.verifying++
    try {
      await next()
    } finally {
      state.verifying--
    }
  }
}

function faultNow({ admissions, metrics, verifying }: State, socket: object | undefined) {
  admissions.noteRequest(socket)
  if (verifying < VERIFYING_MAX) return null
  metrics.refused('crowd')
  const sentence = `${VERIFYING_MAX} verifications are under way: try again`
  return new ApiError('service_unavailable', sentence, { retryAfterS: 1 })
}
