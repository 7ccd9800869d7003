/** Every error code of the API with its HTTP status. */
export const STATUS = {
  invalid_request: 400,
  invalid_json: 400,
  invalid_email: 400,
  emails_required: 400,
  empty_list: 400,
  too_many_emails: 400,
  invalid_webhook_url: 400,
  invalid_list_url: 400,
  list_unreachable: 400,
  list_access_denied: 400,
  list_http_error: 400,
  invalid_event: 400,
  authentication_error: 401,
  key_expired: 401,
  key_revoked: 401,
  ip_restricted: 403,
  domain_restricted: 403,
  insufficient_scope: 403,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  last_key: 409,
  account_exists: 409,
  job_not_ready: 409,
  job_not_cancellable: 409,
  job_not_finishable: 409,
  job_not_resumable: 409,
  job_not_reverifiable: 409,
  idempotency_in_progress: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  expectation_failed: 417,
  idempotency_mismatch: 422,
  rate_limit: 429,
  quota_exceeded: 429,
  concurrent_jobs_exceeded: 429,
  stored_rows_exceeded: 429,
  headers_too_large: 431,
  server_error: 500,
  service_unavailable: 503,
  insufficient_storage: 507,
} as const

export type ApiCode = keyof typeof STATUS

type ApiErrorOptions = {
  /** Names what was refused: the code of an operation error. */
  readonly reason?: string | undefined
  /** A sentence that tells the client what to do in terms of the HTTP API. It ends the message. */
  readonly remedy?: string | undefined
  readonly retryAfterS?: number | undefined
  readonly cause?: unknown
}

/** A refused request. Thrown anywhere above the store and turned into a response in one place. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: ApiCode
  readonly reason: string | undefined
  readonly remedy: string | undefined
  /** Seconds after which a retry is useful; null if unknown. */
  readonly retryAfterS: number | null

  constructor(code: ApiCode, sentence: string, options: ApiErrorOptions = {}) {
    const { reason, remedy, cause } = options
    // The error becomes a response, so its stack is not used, and capturing one costs as much as
    // checking all rate limits.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(remedy === undefined ? sentence : `${sentence} ${remedy}`, { cause })
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.reason = reason
    this.remedy = remedy
    this.retryAfterS = options.retryAfterS ?? null
  }
}
