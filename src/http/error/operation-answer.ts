import {
  describeOperation,
  type OperationError,
  type OperationTexts,
} from '../../base/operation-error.ts'
import { cleanText } from '../../base/text.ts'
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
}

const PRIVATE_HINT =
  ' Events go to public addresses; whoever runs the service can allow others with --webhook-allow-ranges.'

/** A test event takes half a minute at most. */
const TEST_RETRY_S = 5

export const operationAnswer = (error: OperationError): ApiError =>
  describeOperation(ANSWERS, error)
