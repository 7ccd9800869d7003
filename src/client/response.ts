import { EvApiError } from './error.ts'
import type { ErrorBody } from './types.ts'

/** How the limit that is nearest to its end stands. */
export type RateLimit = {
  readonly limit: number
  readonly remaining: number
  readonly resetAt: Date
}

/** Reads the X-RateLimit headers; null when the answer has none, as that of a proxy. */
export function rateLimitOf(headers: Headers): RateLimit | null {
  const [limit, remaining, resetS] = ['limit', 'remaining', 'reset'].map(name =>
    wholeNumber(headers.get(`x-ratelimit-${name}`)),
  )
  if (limit == null || remaining == null || resetS == null) return null
  return { limit, remaining, resetAt: new Date(resetS * 1_000) }
}

/** The JSON of an answer that says yes. */
export function readJson(response: Response, text: string): unknown {
  // There is nothing to say.
  if (response.status === 204) return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw new EvApiError(
      `The answer with status ${response.status} is not JSON: something between here and the service wrote it, or baseUrl names something else.`,
      { ...factsOf(response), code: null, retryAfterMs: null, body: text },
    )
  }
}

/** What an answer that says no says: the service's own body, the sandbox's, or whatever a proxy wrote. */
export function apiErrorOf(response: Response, text: string, now: number): EvApiError {
  const body = parsed(text)
  const said: Record<string, unknown> = isObject(body) ? body : {}
  const retryAfter =
    response.headers.get('retry-after') ?? textOf(said.retry_after) ?? textOf(said.retryAfter)
  return new EvApiError(bodyMessage(response, said), {
    ...factsOf(response),
    requestId: response.headers.get('x-request-id') ?? textOf(said.request_id),
    code: textOf(said.code) ?? (said.success === undefined ? textOf(said.error) : null),
    retryAfterMs: retryAfterMs(retryAfter, now),
    body,
  })
}

/** What went wrong after an answer had begun: its status was sent by then, and only faults of the service come so late. */
export const toApiError = (body: ErrorBody): EvApiError =>
  new EvApiError(body.error, {
    ...{ status: 500, code: body.code, requestId: body.request_id },
    ...{ retryAfterMs: null, body: body },
  })

function bodyMessage({ status, headers }: Response, said: Record<string, unknown>): string {
  const message = textOf(said.message) ?? textOf(said.detail) ?? textOf(said.error)
  if (message !== null) return message
  // In a browser a redirect that is not followed has status 0 and tells nothing.
  if (status === 0 || (status >= 300 && status < 400)) {
    return `The service redirects to ${headers.get('location') ?? 'another address'}: set baseUrl to where it really is.`
  }
  return `The answer has status ${status} and does not say why: something between here and the service wrote it.`
}

const factsOf = (response: Response) => ({
  status: response.status,
  requestId: response.headers.get('x-request-id'),
})

/** RFC 9110 §10.2.3: seconds, or a date. */
export function retryAfterMs(text: string | null, now: number): number | null {
  if (text === null) return null
  const seconds = wholeNumber(text)
  if (seconds !== null) return seconds * 1_000
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const wholeNumber = (text: string | null) =>
  text !== null && /^\s*\d{1,15}\s*$/.test(text) ? Number(text) : null

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const textOf = (value: unknown) =>
  typeof value === 'string' && value !== ''
    ? value
    : typeof value === 'number'
      ? String(value)
      : null
