import { HOUR, MINUTE, SECOND } from '../../platform/clock.ts'
import type {
  OperationError,
  OperationErrors,
  OperationFacts,
} from '../../platform/operation-error.ts'
import { type ApiCode, ApiError } from './api-error.ts'
import { requestError } from './request-errors.ts'

type Answer = {
  readonly code: ApiCode
  /** What the client can do, as a sentence. */
  readonly remedy?: string | undefined
  /** Seconds after which a retry is useful. */
  readonly retryAfterS?: number | undefined
}

/** A test event times out after 30 seconds; most end sooner. */
const TEST_RETRY_S = 5

/** Error codes of the API for the errors of operations; null: only the CLI runs the operation. */
const ANSWERS: {
  readonly [Code in keyof OperationErrors]:
    | ApiCode
    | Answer
    | ((facts: OperationFacts<Code>) => Answer)
    | null
} = {
  webhook_not_found: 'not_found',
  webhook_disabled: {
    code: 'invalid_request',
    remedy: 'Enable it first: PATCH it with {"active": true}.',
  },
  webhook_limit_reached: { code: 'invalid_request', remedy: 'Delete one first.' },
  webhook_url_rejected: ({ isPrivate }) => ({
    code: 'invalid_webhook_url',
    remedy: isPrivate
      ? 'Events are only sent to public addresses; the admin can allow others with --webhook-allow-ranges.'
      : undefined,
  }),
  webhook_header_rejected: 'invalid_request',
  webhook_test_limit_reached: { code: 'rate_limit', retryAfterS: TEST_RETRY_S },
  event_not_found: 'not_found',
  delivery_not_found: 'not_found',

  feedback_source_not_found: 'not_found',
  feedback_source_limit_reached: { code: 'invalid_request', remedy: 'Delete one first.' },
  feedback_key_rejected: 'invalid_request',
  feedback_request_rejected: ({ kind }) => REJECTIONS[kind],
  stored_feedback_exceeded: {
    code: 'stored_rows_exceeded',
    remedy: 'Wait until old feedback is deleted, or ask the admin for another plan.',
    retryAfterS: HOUR / SECOND,
  },

  name_invalid: 'invalid_request',
  email_invalid: 'invalid_request',
  account_not_found: 'not_found',
  account_exists: 'account_exists',
  account_name_taken: 'account_exists',
  plan_unknown: 'invalid_request',
  account_rights_exceeded: ({ field }) => ({
    code: 'insufficient_scope',
    remedy: `Use a key with the scope "*" and no restrictions, or run "ev accounts set-${field}".`,
  }),
  key_not_found: 'not_found',
  key_limit_reached: {
    code: 'invalid_request',
    remedy: 'Delete unused keys first, or change the plan.',
  },
  last_key: { code: 'last_key', remedy: 'Create another key first, or delete it with force=true.' },
  rights_exceeded: 'insufficient_scope',
  domains_required: 'invalid_request',
  scopes_fixed: 'invalid_request',
  expiry_past: 'invalid_request',
  person_not_found: 'not_found',
  person_exists: 'invalid_request',
  person_limit_reached: 'invalid_request',
  person_rights_exceeded: 'insufficient_scope',
  own_person: 'invalid_request',
  two_factor_without_admin: 'invalid_request',
  credits_used_up: reset => ({ code: 'quota_exceeded', retryAfterS: secondsUntil(reset) }),
  credits_exceeded: reset => ({ code: 'quota_exceeded', retryAfterS: secondsUntil(reset) }),

  job_not_found: 'not_found',
  job_not_cancellable: 'job_not_cancellable',
  job_not_finishable: {
    code: 'job_not_finishable',
    remedy: 'Resume it first with POST /v1/jobs/{id}/resume.',
  },
  job_not_resumable: ({ state }) => ({
    code: 'job_not_resumable',
    remedy: state === 'cancelled' || state === 'failed' ? 'Get its current status.' : undefined,
  }),
  job_not_reverifiable: 'job_not_reverifiable',
  job_not_list: {
    code: 'job_not_reverifiable',
    remedy: 'Verify a single address again with POST /v1/verify and "force_refresh": true.',
  },
  no_row_selected: 'empty_list',
  job_in_use: null,
  list_empty: { code: 'empty_list', remedy: 'Give at least one address.' },
  concurrent_jobs_exceeded: {
    code: 'concurrent_jobs_exceeded',
    remedy: 'Wait for one to finish, or cancel one with POST /v1/jobs/{id}/cancel.',
    retryAfterS: MINUTE / SECOND,
  },
  stored_rows_exceeded: {
    code: 'stored_rows_exceeded',
    remedy: 'Delete lists with DELETE /v1/jobs/{id}, or wait until old lists are removed.',
    retryAfterS: HOUR / SECOND,
  },
  schedule_not_found: 'not_found',
  schedule_limit_reached: { code: 'invalid_request', remedy: 'Delete one first.' },
  schedule_without_results: 'invalid_request',

  address_invalid: null,
  address_in_use: null,
  database_absent: null,
  database_unusable: null,
  database_newer: null,
  data_dir_in_use: null,
  backup_of_itself: null,
  backup_exists: null,
  backup_failed: null,
}

/** Returns the response for an error of an operation: its sentence with the remedy of the API. */
export function answerOperation(error: OperationError): ApiError {
  const found = ANSWERS[error.code]
  if (found === null) return requestError('internal_error', { cause: error })
  const answer = typeof found === 'function' ? found(error.facts as never) : found
  if (typeof answer === 'string') return new ApiError(answer, error.message, { reason: error.code })
  const { code, remedy, retryAfterS } = answer
  return new ApiError(code, error.message, { reason: error.code, remedy, retryAfterS })
}

/** Responses to rejected requests of email providers. */
const REJECTIONS = {
  authentication: { code: 'authentication_error' },
  body: { code: 'invalid_request' },
  unavailable: { code: 'service_unavailable', retryAfterS: 60 },
} as const

const secondsUntil = ({ resetAt, now }: { readonly resetAt: number; readonly now: number }) =>
  Math.max(1, Math.ceil((resetAt - now) / SECOND))
