import type { Context } from 'hono'
import type { Capacity } from '../capacity.ts'
import type { Env } from '../context.ts'
import type { ApiError } from '../errors/api-error.ts'
import type { RouteTable } from './route-table.ts'

/** The header in which clients of Reacher send their key. */
export const REACHER_SECRET = 'x-reacher-secret'

/** The headers that a key can be sent in. */
type SentKeyHeaders = {
  readonly authorization?: string | undefined
  readonly [REACHER_SECRET]?: string | string[] | undefined
}

type AdmissionDeps = { readonly capacity: Capacity; readonly routes: RouteTable }

/**
 * Decides about a request before the app runs: calls `start` at once or later, or returns the error
 * with which it is refused.
 */
export type Admission = (
  request: {
    readonly method?: string | undefined
    readonly url?: string | undefined
    readonly headers: SentKeyHeaders
    readonly socket: object
  },
  response: { once(event: 'close', listener: () => void): unknown },
  start: () => void,
) => ApiError | null

/**
 * Refuses verifications that do not fit the capacity before the app runs: under load most requests
 * are refused, and each waits for this. Others start when the event loop has time for them.
 */
export function createAdmission({ capacity, routes }: AdmissionDeps): Admission {
  const { admissions } = capacity
  return (request, response, start) => {
    if (!routes.find(request.method, request.url).isVerification) {
      start()
      return null
    }
    const key = request.headers.authorization ?? String(request.headers[REACHER_SECRET] ?? '')
    admissions.noteRequest(request.socket)
    const error = capacity.findRefusal(key)
    if (error !== null) return error
    response.once('close', () => admissions.leave(response))
    admissions.enter(response, key, start)
    return null
  }
}

/** Adds a place that the request holds until it is answered. Returns a function that leaves it. */
export function holdPlace(c: Context<Env>, leave: () => void): () => void {
  let isHeld = true
  const leaveOnce = () => {
    if (isHeld) leave()
    isHeld = false
  }
  const places = c.get('places')
  if (places === undefined) c.set('places', [leaveOnce])
  else places.push(leaveOnce)
  return leaveOnce
}

/** Leaves the places of a request, which may be answered later: waiting takes none. */
export function leavePlaces(c: Context<Env>): void {
  for (const leave of c.get('places') ?? []) leave()
}
