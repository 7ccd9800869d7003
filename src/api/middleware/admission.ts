import type { MiddlewareHandler } from 'hono'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'
import { getState, type State } from '../state.ts'

/** Verifications at the same time. More are refused at once: their clients would time out. */
export const VERIFYING_MAX = 1_000

/** Returns the error of a request that is refused before the app runs, or null. */
export type OverloadError = (request: {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly socket: object
}) => ApiError | null

/** Paths of all verification endpoints. */
const VERIFY = /^\/v1\/verify\b/

/**
 * Refuses requests above `VERIFYING_MAX` before the app runs: under load most requests are refused,
 * and each waits for this.
 */
export function overloadError(service: Service): OverloadError {
  const state = getState(service)
  return ({ method, url = '', socket }) =>
    method === 'POST' && VERIFY.test(url) ? checkCapacity(state, socket) : null
}

/**
 * Refuses requests above `VERIFYING_MAX` in the app, and counts admitted ones until they are
 * answered.
 */
export function admitVerifying(service: Service): MiddlewareHandler<Env> {
  const state = getState(service)
  return async (c, next) => {
    const error = checkCapacity(state, c.env?.incoming?.socket)
    if (error !== null) throw error
    state.verifying++
    try {
      await next()
    } finally {
      state.verifying--
    }
  }
}

function checkCapacity({ admissions, metrics, verifying }: State, socket: object | undefined) {
  admissions.noteRequest(socket)
  if (verifying < VERIFYING_MAX) return null
  metrics.refused('crowd')
  const message = `${VERIFYING_MAX} verifications are in flight. Try again.`
  return new ApiError('service_unavailable', message, { retryAfterS: 1 })
}
