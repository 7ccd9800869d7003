import { EvApiError } from './error.ts'
import type { ErrorBody } from './types.ts'

/** State of the rate limit that is closest to exhaustion. */
export type RateLimit = {
  readonly limit: number
  readonly remaining: number
  readonly resetAt: Date
}

/** Reads the X-RateLimit headers; null if there are none, as in the response of a proxy. */
export function parseRateLimit(headers: Headers): RateLimit | null {
  const [limit, remaining, resetS] = ['limit', 'remaining', 'reset'].map(name =>
    parseInteger(headers.get(`x-ratelimit-${name}`)),
  )
  if (limit == null || remaining == null || resetS == null) return null
  return { limit, remaining, resetAt: new Date(resetS * 1_000) }
}

/** Parses the body of a successful response. */
export function readJson(response: Response, text: string): unknown {
  // No content.
  if (response.status === 204) return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw new EvApiError(
      `The response with status ${response.status} is not JSON. A proxy sent it, or baseUrl is wrong.`,
      { ...commonFields(response), code: null, retryAfterMs: null, body: text },
    )
  }
}

/** Converts an error response of the service, the sandbox or a proxy. */
export function parseApiError(response: Response, text: string, now: number): EvApiError {
  const body = parseJson(text)
  const fields: Record<string, unknown> = isObject(body) ? body : {}
  const retryAfter =
    response.headers.get('retry-after') ?? toText(fields.retry_after) ?? toText(fields.retryAfter)
  return new EvApiError(errorMessage(response, fields), {
    ...commonFields(response),
    requestId: response.headers.get('x-request-id') ?? toText(fields.request_id),
    code: toText(fields.code) ?? (fields.success === undefined ? toText(fields.error) : null),
    retryAfterMs: retryAfterMs(retryAfter, now),
    body,
  })
}

/** Converts an error sent after the response had started. Only internal errors occur then. */
export const toApiError = (body: ErrorBody): EvApiError =>
  new EvApiError(body.error, {
    status: 500,
    code: body.code,
    requestId: body.request_id,
    retryAfterMs: null,
    body: body,
  })

function errorMessage({ status, headers }: Response, fields: Record<string, unknown>): string {
  const message = toText(fields.message) ?? toText(fields.detail) ?? toText(fields.error)
  if (message !== null) return message
  // In browsers an unfollowed redirect has status 0 and no headers.
  if (status === 0 || (status >= 300 && status < 400)) {
    return `The service redirects to ${headers.get('location') ?? 'another URL'}. Set baseUrl to the final URL.`
  }
  return `The response with status ${status} has no error message. A proxy may have sent it.`
}

const commonFields = (response: Response) => ({
  status: response.status,
  requestId: response.headers.get('x-request-id'),
})

/** Parses Retry-After (RFC 9110 §10.2.3): seconds, or a date. */
function retryAfterMs(text: string | null, now: number): number | null {
  if (text === null) return null
  const seconds = parseInteger(text)
  if (seconds !== null) return seconds * 1_000
  const at = Date.parse(text)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const parseInteger = (text: string | null) =>
  text !== null && /^\s*\d{1,15}\s*$/.test(text) ? Number(text) : null

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const toText = (value: unknown) =>
  typeof value === 'string' && value !== ''
    ? value
    : typeof value === 'number'
      ? String(value)
      : null
