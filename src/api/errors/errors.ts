import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { isStorageError } from '../../db/database.ts'
import { isOutage } from '../../db/postgres/errors.ts'
import { HOUR, MINUTE, SECOND } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { formatNumber, isoTime, pluralize } from '../../platform/format.ts'
import type { Log } from '../../platform/log.ts'
import {
  describeOperation,
  OperationError,
  type OperationTexts,
} from '../../platform/operation-error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../context.ts'
import { emptyList } from '../lists/emails.ts'
import { LAST_KEY } from '../schemas/key.ts'
import { type ApiCode, ApiError, STATUS } from './api-error.ts'

/** The body of every error response (section 7 of the interface). */
export const errorBody = (code: ApiCode, message: string, requestId: string) => ({
  success: false as const,
  error: message,
  code,
  request_id: requestId,
})

/** Turns anything thrown into an ApiError. Internal faults do not reveal their cause. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown
  if (thrown instanceof OperationError) return fromOperationError(thrown)
  if (thrown instanceof HTTPException) return fromHttpException(thrown)
  const cause = { cause: thrown }
  if (isStorageError(thrown)) {
    const message = isOutage(thrown)
      ? DATABASE_UNREACHABLE
      : 'The service cannot store data right now. Try again.'
    return new ApiError('service_unavailable', message, { ...cause, retryAfterS: STORE_RETRY_S })
  }
  if (thrown instanceof EvError && thrown.code === 'bad_input') {
    return new ApiError('invalid_request', thrown.message, cause)
  }
  return new ApiError('server_error', 'An internal error occurred. Try again later.', cause)
}

/** Sends an error as JSON, or as a problem document (RFC 9457) if the client accepts one. */
export function answerError(c: Context<Env>, log: Log, thrown: unknown): Response {
  const { error, body } = logError(c, log, thrown)
  const status = STATUS[error.code]
  const retryAfterS = error.retryAfterS ?? (status === 503 ? 1 : null)
  if (retryAfterS !== null) c.header('Retry-After', String(Math.max(1, Math.ceil(retryAfterS))))
  if (status === 401) c.header('WWW-Authenticate', c.get('challenge') ?? 'Bearer')
  const problem = wantsProblem(c.req.header('Accept'))
  return c.body(JSON.stringify(problem ? toProblem(body) : body), status as ContentfulStatusCode, {
    'Content-Type': problem ? 'application/problem+json' : 'application/json',
  })
}

/** Returns an error with its response body. Faults of the service are logged with their cause. */
export function logError(c: Context<Env>, log: Log, thrown: unknown) {
  const error = toApiError(thrown)
  const requestId = c.get('requestId')
  if (STATUS[error.code] >= 500) report(log, error, requestId)
  return { error, body: errorBody(error.code, error.message, requestId) }
}

const DATABASE_UNREACHABLE = 'The service cannot reach its database. Try again.'

/** A full disk or a busy database usually recovers within seconds. */
const STORE_RETRY_S = 5

/** Converts an error of Hono's own validators, which run before ours. */
function fromHttpException(thrown: HTTPException): ApiError {
  const cause = { cause: thrown }
  if (thrown.status === 415) {
    return new ApiError('unsupported_media_type', 'Unsupported Content-Type.', cause)
  }
  if (thrown.status === 413)
    return new ApiError('payload_too_large', 'The request body is too large.', cause)
  if (thrown.status < 500) return new ApiError('invalid_request', thrown.message, cause)
  return new ApiError('server_error', 'An internal error occurred. Try again later.', cause)
}

/** Logs a failed request. A 503 is caused by the environment and is logged without a stack. */
function report(log: Log, error: ApiError, requestId: string): void {
  // Our own limits can refuse a thousand requests a second: the log writes the same refusal once a
  // minute.
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

/** RFC 9457 members plus the fields of the plain error body, so that one parser reads both. */
const toProblem = (body: ReturnType<typeof errorBody>) => ({
  type: 'about:blank',
  title: body.code,
  status: STATUS[body.code],
  detail: body.error,
  ...body,
})

/** Errors of use cases that only the CLI runs. */
const notOverHttp = () =>
  new ApiError('server_error', 'An internal error occurred. Try again later.')

/** Maps each operation error to an API error. */
const ANSWERS: OperationTexts<ApiError> = {
  webhook_not_found: () => new ApiError('not_found', 'Webhook endpoint not found.'),
  webhook_disabled: () =>
    new ApiError(
      'invalid_request',
      'The webhook endpoint is disabled, so nothing is sent to it. Enable it first: PATCH it with {"active": true}.',
    ),
  webhook_limit_reached: ({ count }) =>
    new ApiError(
      'invalid_request',
      `The account has ${count} webhook endpoints, which is the maximum. Delete one first.`,
    ),
  webhook_url_rejected: ({ field, url, fault, isPrivate }) =>
    new ApiError(
      'invalid_webhook_url',
      `"${field}" is "${sanitizeText(url, 100)}", which is not allowed. ${fault}${isPrivate ? PRIVATE_HINT : ''}`,
    ),
  webhook_header_rejected: ({ name, fault }) =>
    new ApiError(
      'invalid_request',
      `"headers" has "${sanitizeText(name, 100)}", which cannot be used. ${fault}`,
    ),
  webhook_test_limit_reached: ({ count }) =>
    new ApiError(
      'rate_limit',
      `${count} test events of this account are in flight. Wait until one has finished.`,
      { retryAfterS: TEST_RETRY_S },
    ),
  delivery_not_found: () =>
    new ApiError('not_found', 'This webhook endpoint has no such delivery.'),
  feedback_source_not_found: () => new ApiError('not_found', 'Feedback source not found.'),
  feedback_source_limit_reached: ({ count }) =>
    new ApiError(
      'invalid_request',
      `The account has ${count} feedback sources, which is the maximum. Delete one first.`,
    ),
  feedback_key_rejected: ({ title, keyName, expected }) =>
    new ApiError(
      'invalid_request',
      expected === null
        ? `"key" is not used for ${title}. Omit it: the response has a password.`
        : `"key" must be the ${keyName} of ${title}, ${expected}.`,
    ),
  feedback_request_rejected: ({ kind, fault }) =>
    new ApiError(REJECTIONS[kind], fault, kind === 'unavailable' ? { retryAfterS: 60 } : {}),
  name_invalid: ({ name, lengthMax }) =>
    new ApiError(
      'invalid_request',
      `"name" is ${sanitizeText(JSON.stringify(name), 60)}; it must be 1 to ${lengthMax} characters on one line.`,
    ),
  key_not_found: () => new ApiError('not_found', 'API key not found.'),
  key_limit_reached: ({ count, max, plan }) =>
    new ApiError(
      'invalid_request',
      `The account has ${pluralize(count, 'key')}; its plan "${plan}" allows ${max}. Delete unused keys first, or change the plan.`,
    ),
  person_not_found: () => new ApiError('not_found', 'Person not found.'),
  person_exists: ({ email }) =>
    new ApiError('invalid_request', `"email" is ${email}, which a person of the account has.`),
  person_limit_reached: ({ count }) =>
    new ApiError(
      'invalid_request',
      `The account has ${count} people, which is the maximum. Remove one first.`,
    ),
  person_rights_exceeded: ({ role }) =>
    new ApiError(
      'insufficient_scope',
      `The role "${role}" has more rights than the caller, who cannot give it or manage people who have it.`,
    ),
  own_person: () =>
    new ApiError(
      'invalid_request',
      'You cannot change your own role or remove yourself. Another admin of the account can.',
    ),
  last_key: () => new ApiError('last_key', LAST_KEY),
  rights_exceeded: ({ rights, scopes }) =>
    new ApiError(
      'insufficient_scope',
      `This API key cannot manage a key that has more rights than itself: ${rights
        .map(right => (right === 'scopes' ? `scopes (${scopes.join(', ')})` : RIGHT_FIELDS[right]))
        .join(', ')}`,
    ),
  account_rights_exceeded: ({ field }) => new ApiError('insufficient_scope', ACCOUNT_RIGHTS[field]),
  domains_required: () =>
    new ApiError(
      'invalid_request',
      '"allowed_domains" is empty; a publishable key needs at least one domain, such as shop.example.com.',
    ),
  scopes_fixed: () =>
    new ApiError(
      'invalid_request',
      '"scopes" cannot be changed for a publishable key. Omit it, or create another key.',
    ),
  expiry_past: ({ expiresAt }) =>
    new ApiError(
      'invalid_request',
      `"expires_at" is "${isoTime(expiresAt)}"; it must be a time in the future.`,
    ),
  job_not_found: () => new ApiError('not_found', 'Job not found.'),
  job_not_finishable: ({ state }) =>
    new ApiError(
      'job_not_finishable',
      `The job has ${state === 'failed' ? 'failed' : 'been cancelled'}. Resume it first with POST /v1/jobs/{id}/resume.`,
    ),
  job_not_cancellable: ({ state }) =>
    new ApiError('job_not_cancellable', `The job is already ${state}.`),
  job_not_resumable: ({ state }) =>
    new ApiError(
      'job_not_resumable',
      state === 'cancelled' || state === 'failed'
        ? 'The job was resumed by another request. Get its current status.'
        : `The job is ${state}. Only a cancelled or failed job can be resumed.`,
    ),
  job_not_reverifiable: ({ state, isList }) =>
    new ApiError(
      'job_not_reverifiable',
      isList
        ? `The job is ${state}. Only a list that is completed, cancelled or failed can be re-verified.`
        : 'The job is a single address, not a list. Verify it again with POST /v1/verify and "force_refresh": true.',
    ),
  no_row_selected: () =>
    new ApiError(
      'empty_list',
      'No row of the list matches "only" or "older_than_days", so there is nothing to re-verify. Rows that aren\'t addresses are never re-verified.',
    ),
  schedule_not_found: () => new ApiError('not_found', 'Schedule not found.'),
  schedule_limit_reached: ({ count }) =>
    new ApiError(
      'invalid_request',
      `The account has ${count} schedules, which is the maximum. Delete one first.`,
    ),
  schedule_without_results: () =>
    new ApiError(
      'invalid_request',
      'The schedule cannot be resumed: the results that it would verify again were deleted. Delete it, and create a schedule of another list.',
    ),
  job_in_use: notOverHttp,
  list_empty: () => emptyList('The list has no rows.'),
  credits_used_up: ({ limit, ...reset }) =>
    new ApiError(
      'quota_exceeded',
      `All ${limit} daily verifications are used up. They reset at midnight UTC.`,
      { retryAfterS: secondsUntil(reset) },
    ),
  credits_exceeded: ({ plan, creditsPerDay, needed, left, ...reset }) => {
    const neededText = needed === null ? 'more than that' : formatNumber(needed)
    const leftText =
      left === null
        ? 'not enough are left'
        : `${formatNumber(left)} are left, and this list needs ${neededText}`
    return new ApiError(
      'quota_exceeded',
      `The plan ${plan} has ${creditsPerDay} verifications a day; ${leftText}. They reset at ${isoTime(reset.resetAt)}.`,
      { retryAfterS: secondsUntil(reset) },
    )
  },
  concurrent_jobs_exceeded: ({ plan, openLists, max }) =>
    new ApiError(
      'concurrent_jobs_exceeded',
      `${formatNumber(openLists)} lists of the account are not finished, and the plan ${plan} allows ${formatNumber(max)} at a time. Wait for one to finish, or cancel one with POST /v1/jobs/{id}/cancel.`,
      { retryAfterS: MINUTE / SECOND },
    ),
  stored_rows_exceeded: ({ plan, storedRows, rows, isMore, max }) =>
    new ApiError(
      'stored_rows_exceeded',
      `The account stores ${formatNumber(storedRows)} rows of lists, this list has ${isMore ? 'more than ' : ''}${formatNumber(rows)}, and the plan ${plan} allows ${formatNumber(max)}. Delete lists with DELETE /v1/jobs/{id}, or wait until old lists are removed.`,
      { retryAfterS: HOUR / SECOND },
    ),
  stored_feedback_exceeded: ({ plan, stored, pieces, max }) =>
    new ApiError(
      'stored_rows_exceeded',
      `The account stores ${formatNumber(stored)} pieces of feedback, this request has ${formatNumber(pieces)} new ones, and the plan ${plan} allows ${formatNumber(max)}. Wait until old feedback is deleted, or ask the admin for another plan.`,
      { retryAfterS: HOUR / SECOND },
    ),
  address_invalid: notOverHttp,
  address_in_use: notOverHttp,
  database_absent: notOverHttp,
  database_unusable: notOverHttp,
  database_newer: notOverHttp,
  data_dir_in_use: notOverHttp,
  backup_of_itself: notOverHttp,
  backup_exists: notOverHttp,
  backup_failed: notOverHttp,
  account_not_found: () => new ApiError('not_found', 'Account not found.'),
  account_exists: ({ id, name }) =>
    new ApiError('account_exists', `There is already an account "${sanitizeText(name)}": ${id}.`),
  account_name_taken: ({ name }) =>
    new ApiError(
      'account_exists',
      `Another account has the name "${sanitizeText(name)}". Choose another name.`,
    ),
  plan_unknown: ({ plan, plans }) =>
    new ApiError(
      'invalid_request',
      `"plan" is "${sanitizeText(plan, 60)}"; it must be one of ${plans.join(', ')}.`,
    ),
  email_invalid: ({ email, fault }) =>
    new ApiError(
      'invalid_request',
      `"email" is "${sanitizeText(email, 100)}". ${fault ?? 'Use an address with a domain name and an unquoted ASCII local part, such as ops@example.com.'}`,
    ),
}

/** Codes of rejected requests of email providers. */
const REJECTIONS = {
  authentication: 'authentication_error',
  body: 'invalid_request',
  unavailable: 'service_unavailable',
} as const

const secondsUntil = ({ resetAt, now }: { readonly resetAt: number; readonly now: number }) =>
  Math.max(1, Math.ceil((resetAt - now) / SECOND))

/** API field names of the rights of a key. */
const ACCOUNT_RIGHTS = {
  admin:
    'This API key cannot set "admin" of an account, since keys of an admin account may have more rights than this key. Use a key with the scope "*" and no restrictions, or run "ev accounts set-admin".',
  plan: 'This API key cannot set a plan that allows more than the plan of its own account. Use a key with the scope "*" and no restrictions, or run "ev accounts set-plan".',
} as const

const RIGHT_FIELDS = {
  allowedIps: 'allowed_ips',
  allowedDomains: 'allowed_domains',
  rateLimitPerMinute: 'rate_limit_per_minute',
  expiresAt: 'expires_at',
  isTest: 'test',
} as const

const PRIVATE_HINT =
  ' Events are only sent to public addresses; the admin can allow others with --webhook-allow-ranges.'

/** A test event times out after 30 seconds; most end sooner. */
const TEST_RETRY_S = 5

const fromOperationError = (error: OperationError): ApiError => describeOperation(ANSWERS, error)
