import type { ErrorBody } from './types.ts'

/** The service answered, and said no. */
export class EvApiError extends Error {
  override readonly name = 'EvApiError'
  readonly status: number
  /** For programs: what went wrong. Null when the answer is not the service's, as that of a proxy. */
  readonly code: ErrorBody['code'] | (string & {}) | null
  /** Give it when you ask the operator of the service. */
  readonly requestId: string | null
  /** How long the service asks to be left alone; null when it does not say. */
  readonly retryAfterMs: number | null
  /** The body: parsed where it is JSON, text else. */
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

export type ApiErrorFacts = Pick<
  EvApiError,
  'status' | 'code' | 'requestId' | 'retryAfterMs' | 'body'
>

/** No whole answer came: the network, a time limit, or a connection that broke off. */
export class EvConnectionError extends Error {
  override readonly name = 'EvConnectionError'
  /** Whether it was our own time limit that ended it. */
  readonly timedOut: boolean

  constructor(message: string, options: { timedOut: boolean; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.timedOut = options.timedOut
  }
}

/** A webhook that must not be believed. */
export class EvWebhookError extends Error {
  override readonly name = 'EvWebhookError'
}
