import type { Context, MiddlewareHandler } from 'hono'
import { SECOND } from '../../platform/clock.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'
import { getState, type State, VERIFYING_MAX } from '../state.ts'

/** Returns the error of a request that is refused before the app runs, or null. */
export type OverloadError = (request: {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: { readonly authorization?: string | undefined }
  readonly socket: object
}) => ApiError | null

/** Paths of all verification endpoints. */
const VERIFY = /^\/v1\/verify\b/

/**
 * Refuses requests above `VERIFYING_MAX`, and those of an account whose share is full, before the
 * app runs: under load most requests are refused, and each waits for this.
 */
export function overloadError(service: Service): OverloadError {
  const state = getState(service)
  return ({ method, url = '', headers, socket }) =>
    method === 'POST' && VERIFY.test(url)
      ? (checkCapacity(state, socket) ?? checkShare(state, headers.authorization))
      : null
}

/**
 * Refuses requests above `VERIFYING_MAX` in the app, and counts admitted ones until they are
 * answered or `leavePlaces` is called.
 */
export function admitVerifying(service: Service): MiddlewareHandler<Env> {
  const state = getState(service)
  return async (c, next) => {
    const error = checkCapacity(state, c.env?.incoming?.socket)
    if (error !== null) throw error
    state.verifying++
    holdPlace(c, () => {
      state.verifying--
    })
    try {
      await next()
    } finally {
      leavePlaces(c)
    }
  }
}

/**
 * For this long after a refusal, requests with the same key are refused while the share of its
 * account is full, without looking the key up. A change of a key reaches other servers within the
 * same time.
 */
const CROWDED_MS = SECOND

/** Holds a place of the account's share. Throws ApiError if there is none. */
export function holdShare(c: Context<Env>, state: State, accountId: string): void {
  try {
    holdPlace(c, state.verifyingShare(accountId))
  } catch (error) {
    const authorization = c.req.header('Authorization')
    if (authorization !== undefined) state.crowdedKeys.set(authorization, { accountId }, CROWDED_MS)
    throw error
  }
}

function checkShare(state: State, authorization: string | undefined): ApiError | null {
  const crowded = authorization === undefined ? undefined : state.crowdedKeys.get(authorization)
  if (crowded === undefined) return null
  try {
    const leave = state.verifyingShare(crowded.accountId)
    leave()
    return null
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

/** Adds a place that the request holds until it is answered. Returns a function that leaves it. */
export function holdPlace(c: Context<Env>, leave: () => void): () => void {
  let isHeld = true
  const leaveOnce = () => {
    if (isHeld) leave()
    isHeld = false
  }
  c.set('places', [...(c.get('places') ?? []), leaveOnce])
  return leaveOnce
}

/** Leaves the places of a request, which may be answered later: waiting takes none. */
export function leavePlaces(c: Context<Env>): void {
  for (const leave of c.get('places') ?? []) leave()
}

function checkCapacity({ admissions, metrics, verifying }: State, socket: object | undefined) {
  admissions.noteRequest(socket)
  if (verifying < VERIFYING_MAX) return null
  metrics.refused('crowd')
  const message = `${VERIFYING_MAX} verifications are in flight. Try again.`
  return new ApiError('service_unavailable', message, { retryAfterS: 1 })
}
