import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { isStorageError } from '../../db/database.ts'
import { isOutage } from '../../db/postgres/errors.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { OperationError } from '../../platform/operation-error.ts'
import type { Env } from '../context.ts'
import { getHeader } from '../headers.ts'
import { API_LOG } from '../telemetry.ts'
import { ApiError, STATUS } from './api-error.ts'
import { answerOperation } from './operations.ts'
import { requestError } from './request-errors.ts'

/** The body of every error response (section 7 of the interface). */
export const errorBody = (
  { code, message, reason, remedy }: Pick<ApiError, 'code' | 'message' | 'reason' | 'remedy'>,
  requestId: string,
) => ({
  success: false as const,
  error: message,
  code,
  // Absent if undefined.
  reason,
  remedy,
  request_id: requestId,
})

/** Turns anything thrown into an ApiError. Internal faults do not reveal their cause. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown
  if (thrown instanceof OperationError) return answerOperation(thrown)
  if (thrown instanceof HTTPException) return fromHttpException(thrown)
  const cause = { cause: thrown }
  if (isStorageError(thrown)) {
    return requestError(isOutage(thrown) ? 'database_unreachable' : 'data_not_stored', cause)
  }
  if (thrown instanceof EvError && thrown.code === 'bad_input') {
    return new ApiError('invalid_request', thrown.message, cause)
  }
  return requestError('internal_error', cause)
}

/** Sends an error as JSON, or as a problem document (RFC 9457) if the client accepts one. */
export function answerError(c: Context<Env>, log: Log, thrown: unknown): Response {
  const { error, body } = logError(c, log, thrown)
  const status = STATUS[error.code]
  const retryAfterS = error.retryAfterS ?? (status === 503 ? 1 : null)
  if (retryAfterS !== null) c.header('Retry-After', String(Math.max(1, Math.ceil(retryAfterS))))
  if (status === 401) c.header('WWW-Authenticate', c.get('challenge') ?? 'Bearer')
  const problem = wantsProblem(getHeader(c, 'accept'))
  return c.body(JSON.stringify(problem ? toProblem(body) : body), status as ContentfulStatusCode, {
    'Content-Type': problem ? 'application/problem+json' : 'application/json',
  })
}

/** Returns an error with its response body. Faults of the service are logged with their cause. */
export function logError(c: Context<Env>, log: Log, thrown: unknown) {
  const error = toApiError(thrown)
  const requestId = c.get('requestId')
  if (STATUS[error.code] >= 500) report(log, error, requestId)
  return { error, body: errorBody(error, requestId) }
}

/** Converts an error of Hono's own validators, which run before ours. */
function fromHttpException(thrown: HTTPException): ApiError {
  const cause = { cause: thrown }
  if (thrown.status === 415) {
    return new ApiError('unsupported_media_type', 'Unsupported Content-Type.', cause)
  }
  if (thrown.status === 413)
    return new ApiError('payload_too_large', 'The request body is too large.', cause)
  if (thrown.status < 500) return new ApiError('invalid_request', thrown.message, cause)
  return requestError('internal_error', cause)
}

/** Logs a failed request. A 503 is caused by the environment and is logged without a stack. */
function report(log: Log, error: ApiError, requestId: string): void {
  // Our own limits can refuse a thousand requests a second: the log writes the same refusal once a
  // minute.
  if (STATUS[error.code] === 503 && error.cause === undefined) {
    writeLog(log, API_LOG.requestsRefused, { why: error.message })
    return
  }
  const cause = error.cause === undefined ? error : error.cause
  const isFault = STATUS[error.code] !== 503
  const stack = isFault && cause instanceof Error ? cause.stack : undefined
  const why = errorMessage(cause)
  writeLog(log, API_LOG.requestFailed, { requestId, code: error.code, why, stack })
}

const wantsProblem = (accept: string | undefined) =>
  accept?.includes('application/problem+json') === true

/** RFC 9457 members plus the fields of the plain error body, so that one parser reads both. */
const toProblem = (body: ReturnType<typeof errorBody>) => ({
  type: 'about:blank',
  title: body.code,
  status: STATUS[body.code],
  detail: body.error,
  ...body,
})
