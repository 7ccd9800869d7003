import type { ErrorBody } from './types.ts'

/** The service responded with an error. */
export class EvApiError extends Error {
  override readonly name = 'EvApiError'
  readonly status: number
  /**
   * Machine-readable error code. Null if the response is not from the service, but from a proxy.
   */
  readonly code: ErrorBody['code'] | (string & {}) | null
  /** ID of the request, for support. */
  readonly requestId: string | null
  /** Wait requested by the service (Retry-After), ms; null if there is none. */
  readonly retryAfterMs: number | null
  /** Response body: parsed if it is JSON, otherwise text. */
  readonly body: unknown

  constructor(message: string, facts: ApiErrorFacts) {
    super(message)
    this.status = facts.status
    this.code = facts.code
    this.requestId = facts.requestId
    this.retryAfterMs = facts.retryAfterMs
    this.body = facts.body
  }
}

type ApiErrorFacts = Pick<EvApiError, 'status' | 'code' | 'requestId' | 'retryAfterMs' | 'body'>

/** No complete response arrived: a network error, a timeout, or a broken connection. */
export class EvConnectionError extends Error {
  override readonly name = 'EvConnectionError'
  /** Whether the timeout of the client ended the attempt. */
  readonly timedOut: boolean

  constructor(message: string, options: { timedOut: boolean; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.timedOut = options.timedOut
  }
}

/** A webhook request failed verification and must not be trusted. */
export class EvWebhookError extends Error {
  override readonly name = 'EvWebhookError'
}
