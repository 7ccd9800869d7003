import type { Context, MiddlewareHandler } from 'hono'
import { SECOND } from '../../platform/clock.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'
import { getState, type State, VERIFYING_ACCOUNT_MAX, VERIFYING_MAX } from '../state.ts'

/**
 * Decides about a request before the app runs: calls `start` at once or later, or returns the error
 * with which it is refused.
 */
export type Admission = (
  request: {
    readonly method?: string | undefined
    readonly url?: string | undefined
    readonly headers: { readonly authorization?: string | undefined }
    readonly socket: object
  },
  response: { once(event: 'close', listener: () => void): unknown },
  start: () => void,
) => ApiError | null

/** Paths of all verification endpoints, and of the tools that call them. */
const VERIFY = /^\/(?:v1\/verify|mcp)\b/

/**
 * Refuses verifications above `VERIFYING_MAX`, and those of an account whose share is full, before
 * the app runs: under load most requests are refused, and each waits for this. Others start when
 * the event loop has time for them.
 */
export function createAdmission(service: Service): Admission {
  const state = getState(service)
  const { admissions } = state
  return (request, response, start) => {
    if (request.method !== 'POST' || !VERIFY.test(request.url ?? '')) {
      start()
      return null
    }
    const key = request.headers.authorization ?? ''
    admissions.noteRequest(request.socket)
    const error = checkCapacity(state) ?? checkKey(state, key) ?? checkShare(state, key)
    if (error !== null) return error
    response.once('close', () => admissions.leave(response))
    admissions.enter(response, key, start)
    return null
  }
}

/**
 * Refuses requests above `VERIFYING_MAX` in the app, and counts admitted ones until they are
 * answered or `leavePlaces` is called.
 */
export function admitVerifying(service: Service): MiddlewareHandler<Env> {
  const state = getState(service)
  return async (c, next) => {
    if (state.verifying >= VERIFYING_MAX) throw crowded(state)
    state.verifying++
    holdPlace(c, () => {
      state.verifying--
      if (c.env?.outgoing !== undefined) state.admissions.leave(c.env.outgoing)
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

/** An account has its share for all of its keys, so that of one key is no larger. */
function checkKey({ admissions, metrics }: State, key: string): ApiError | null {
  const count = admissions.countOf(key)
  if (count < VERIFYING_ACCOUNT_MAX) return null
  metrics.refused('crowd')
  const message = `${count} verifications are in flight for this account. Wait until one has finished.`
  return new ApiError('rate_limit', message, { retryAfterS: 1 })
}

function checkShare(state: State, key: string): ApiError | null {
  const crowded = state.crowdedKeys.get(key)
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

/** Requests that wait for their start are not counted by `admitVerifying` yet. */
const checkCapacity = (state: State) =>
  state.verifying + state.admissions.waiting >= VERIFYING_MAX ? crowded(state) : null

function crowded({ metrics }: State): ApiError {
  metrics.refused('crowd')
  const message = `${VERIFYING_MAX} verifications are in flight. Try again.`
  return new ApiError('service_unavailable', message, { retryAfterS: 1 })
}
