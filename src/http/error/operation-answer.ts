import {
  describeOperation,
  type OperationError,
  type OperationTexts,
} from '../../base/operation-error.ts'
import { cleanText } from '../../base/text.ts'
import { isoTime } from '../../engine/result/present.ts'
import { LAST_KEY } from '../schema/key.ts'
import { ApiError } from './api-error.ts'

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
      `"url" is “${cleanText(url, 100)}”, which cannot be used. ${fault}${isPrivate ? PRIVATE_HINT : ''}`,
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
      `"name" is ${cleanText(JSON.stringify(name), 60)}; it must be 1 to ${lengthMax} characters on one line.`,
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
  account_not_found: () => new ApiError('not_found', 'There is no such account'),
  account_exists: ({ name }) =>
    new ApiError('invalid_request', `There is an account “${cleanText(name)}” already`),
  plan_unknown: ({ plan, plans }) =>
    new ApiError(
      'invalid_request',
      `There is no plan “${cleanText(plan)}”; there are ${plans.join(', ')}`,
    ),
  email_invalid: ({ email, fault }) =>
    new ApiError('invalid_request', `“${cleanText(email)}” cannot be written to. ${fault ?? ''}`),
}

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
