import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { isStorageError } from '../../db/database.ts'
import { isOutage } from '../../db/postgres/errors.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { OperationError } from '../../platform/operation-error.ts'
import type { Env } from '../context.ts'
import { type ApiCode, ApiError, STATUS } from './api-error.ts'
import { operationAnswer } from './operation-answer.ts'

/** The body of every error (section 7 of the interface), with its code and the id of its request. */
export const errorBody = (code: ApiCode, message: string, requestId: string) => ({
  success: false as const,
  error: message,
  code,
  request_id: requestId,
})

/** Anything thrown, as what the caller is told; what is a fault of ours does not say how it came about. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown
  if (thrown instanceof OperationError) return operationAnswer(thrown)
  if (thrown instanceof HTTPException) return ofHono(thrown)
  const cause = { cause: thrown }
  if (isStorageError(thrown)) {
    const sentence = isOutage(thrown) ? AWAY : 'The service cannot store anything now: try again'
    return new ApiError('service_unavailable', sentence, { ...cause, retryAfterS: STORE_RETRY_S })
  }
  if (thrown instanceof EvError && thrown.code === 'bad_input') {
    return new ApiError('invalid_request', thrown.message, cause)
  }
  return new ApiError('server_error', 'Something inside the service failed: try again later', cause)
}

/** Answers an error, as JSON or, where it was asked for, as a problem (RFC 9457). */
export function answerError(c: Context<Env>, log: Log, thrown: unknown): Response {
  const { error, body } = logError(c, log, thrown)
  const status = STATUS[error.code]
  const retryAfterS = error.retryAfterS ?? (status === 503 ? 1 : null)
  if (retryAfterS !== null) c.header('Retry-After', String(Math.max(1, Math.ceil(retryAfterS))))
  if (status === 401) c.header('WWW-Authenticate', 'Bearer')
  const problem = wantsProblem(c.req.header('Accept'))
  return c.body(JSON.stringify(problem ? problemOf(body) : body), status as ContentfulStatusCode, {
    'Content-Type': problem ? 'application/problem+json' : 'application/json',
  })
}

/** What the caller is told of an error; of one of ours the log is told more. */
export function logError(c: Context<Env>, log: Log, thrown: unknown) {
  const error = toApiError(thrown)
  const requestId = c.get('requestId')
  if (STATUS[error.code] >= 500) report(log, error, requestId)
  return { error, body: errorBody(error.code, error.message, requestId) }
}

const AWAY = 'The service cannot reach its database now: try again'

/** A disk that is full or a database that is busy is seldom so for long. */
const STORE_RETRY_S = 5

/** What Hono itself throws: its validators, before ours. */
function ofHono(thrown: HTTPException): ApiError {
  const cause = { cause: thrown }
  if (thrown.status === 415) {
    return new ApiError(
      'unsupported_media_type',
      'This path does not take that Content-Type',
      cause,
    )
  }
  if (thrown.status === 413)
    return new ApiError('payload_too_large', 'The body is too large', cause)
  if (thrown.status < 500) return new ApiError('invalid_request', thrown.message, cause)
  return new ApiError('server_error', 'Something inside the service failed: try again later', cause)
}

/** What is away or full has no place in our code: 503 goes without a stack. */
function report(log: Log, error: ApiError, requestId: string): void {
  // Limits of ours may refuse a thousand requests a second: the log tells the same refusal once a minute.
  if (STATUS[error.code] === 503 && error.cause === undefined) {
    log.warn('requests are refused', { why: error.message })
    return
  }
  const cause = error.cause === undefined ? error : error.cause
  const isFault = STATUS[error.code] !== 503
  const stack = isFault && cause instanceof Error ? cause.stack : undefined
  log.error('a request failed', { requestId, code: error.code, why: errorMessage(cause), stack })
}

const wantsProblem = (accept: string | undefined) =>
  accept?.includes('application/problem+json') === true

/** RFC 9457, with our own fields beside it so that one reader does for both. */
const problemOf = (body: ReturnType<typeof errorBody>) => ({
  type: 'about:blank',
  title: body.code,
  status: STATUS[body.code],
  detail: body.error,
  ...body,
})
