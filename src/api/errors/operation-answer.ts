import { isoTime } from '../../engine/verdict/present-result.ts'
import { HOUR, MINUTE, SECOND } from '../../platform/clock.ts'
import { formatNumber } from '../../platform/format.ts'
import {
  describeOperation,
  type OperationError,
  type OperationTexts,
} from '../../platform/operation-error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { emptyList } from '../lists/emails.ts'
import { LAST_KEY } from '../schemas/key.ts'
import { ApiError } from './api-error.ts'

/** What only the command line does. */
const notOverHttp = () =>
  new ApiError('server_error', 'Something inside the service failed: try again later')

/** The answer of the API to each refusal of a use case. */
const ANSWERS: OperationTexts<ApiError> = {
  webhook_not_found: () => new ApiError('not_found', 'There is no such webhook endpoint'),
  webhook_disabled: () =>
    new ApiError(
      'invalid_request',
      'The webhook endpoint is switched off, so nothing is sent to it. Switch it on first: PATCH it with {"active": true}.',
    ),
  webhook_limit_reached: ({ count }) =>
    new ApiError(
      'invalid_request',
      `The account has ${count} webhook endpoints, which is the most it may have. Delete one first.`,
    ),
  webhook_url_rejected: ({ url, fault, isPrivate }) =>
    new ApiError(
      'invalid_webhook_url',
      `"url" is “${sanitizeText(url, 100)}”, which cannot be used. ${fault}${isPrivate ? PRIVATE_HINT : ''}`,
    ),
  webhook_test_limit_reached: ({ count }) =>
    new ApiError(
      'rate_limit',
      `${count} test events of this account are under way: wait until one has been answered.`,
      { retryAfterS: TEST_RETRY_S },
    ),
  delivery_not_found: () =>
    new ApiError('not_found', 'There is no such delivery to this webhook endpoint'),
  name_invalid: ({ name, lengthMax }) =>
    new ApiError(
      'invalid_request',
      `"name" is ${sanitizeText(JSON.stringify(name), 60)}; it must be 1 to ${lengthMax} characters on one line.`,
    ),
  key_not_found: () => new ApiError('not_found', 'There is no such key'),
  key_limit_reached: ({ count }) =>
    new ApiError(
      'invalid_request',
      `The account has ${count} keys, which is the most it may have. Delete those that nobody uses.`,
    ),
  last_key: () => new ApiError('last_key', LAST_KEY),
  rights_exceeded: ({ rights, scopes }) =>
    new ApiError(
      'insufficient_scope',
      `This API key cannot manage a key that has more rights than itself: ${rights
        .map(right => (right === 'scopes' ? `scopes (${scopes.join(', ')})` : RIGHT_FIELDS[right]))
        .join(', ')}`,
    ),
  expiry_past: ({ expiresAt }) =>
    new ApiError(
      'invalid_request',
      `"expires_at" is "${isoTime(expiresAt)}"; it must be a time in the future.`,
    ),
  job_not_found: () => new ApiError('not_found', 'There is no such job'),
  job_not_cancellable: ({ state }) =>
    new ApiError('job_not_cancellable', `The job is ${state} already`),
  job_not_resumable: ({ state }) =>
    new ApiError(
      'job_not_resumable',
      state === 'cancelled' || state === 'failed'
        ? 'The job was resumed meanwhile: ask how it stands'
        : `The job is ${state}: only one that is cancelled or failed can be resumed`,
    ),
  job_in_use: notOverHttp,
  list_empty: () => emptyList('The list has no rows.'),
  credits_used_up: ({ limit, ...reset }) =>
    new ApiError(
      'quota_exceeded',
      `All ${limit} verifications of the day are used up. The next ones can be had at midnight UTC.`,
      { retryAfterS: secondsUntil(reset) },
    ),
  credits_exceeded: ({ plan, creditsPerDay, needed, left, ...reset }) => {
    const wanted = needed === null ? 'more than that' : formatNumber(needed)
    const rest =
      left === null
        ? 'not enough are left'
        : `${formatNumber(left)} are left, and this list needs ${wanted}`
    return new ApiError(
      'quota_exceeded',
      `The plan ${plan} gives ${creditsPerDay} verifications a day; ${rest}. They are given anew at ${isoTime(reset.resetAt)}.`,
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
  address_invalid: notOverHttp,
  address_in_use: notOverHttp,
  database_absent: notOverHttp,
  database_unusable: notOverHttp,
  database_newer: notOverHttp,
  data_dir_in_use: notOverHttp,
  backup_of_itself: notOverHttp,
  backup_exists: notOverHttp,
  backup_failed: notOverHttp,
  account_not_found: notOverHttp,
  account_exists: notOverHttp,
  plan_unknown: notOverHttp,
  email_invalid: notOverHttp,
}

/** 50,000 */

const secondsUntil = ({ resetAt, now }: { readonly resetAt: number; readonly now: number }) =>
  Math.max(1, Math.ceil((resetAt - now) / SECOND))

/** How the API names the rights of a key. */
const RIGHT_FIELDS = {
  allowedIps: 'allowed_ips',
  allowedDomains: 'allowed_domains',
  rateLimitPerMinute: 'rate_limit_per_minute',
  expiresAt: 'expires_at',
} as const

const PRIVATE_HINT =
  ' Events go to public addresses; whoever runs the service can allow others with --webhook-allow-ranges.'

/** A test event takes half a minute at most. */
const TEST_RETRY_S = 5

export const operationAnswer = (error: OperationError): ApiError =>
  describeOperation(ANSWERS, error)
