import { EvError } from '../base/error.ts'
import {
  describeOperation,
  type OperationError,
  type OperationTexts,
} from '../base/operation-error.ts'
import { cleanText } from '../base/text.ts'

/** What the command line says of each refusal of a use case, and the code to exit with. */
const SENTENCES: OperationTexts<EvError> = {
  webhook_not_found: ({ id }) =>
    new EvError(
      'no_input',
      `There is no webhook ${cleanText(id)}. “ev webhooks” lists those there are.`,
    ),
  webhook_disabled: ({ id }) =>
    new EvError(
      'usage',
      `The webhook ${id} is switched off, so nothing is sent to it. Switch it on first: “ev webhooks enable ${id}”.`,
    ),
  webhook_limit_reached: ({ count }) =>
    new EvError(
      'usage',
      `The account has ${count} webhooks, which is the most it may have. Remove one first, with “ev webhooks delete”.`,
    ),
  webhook_url_rejected: ({ url, fault, isPrivate }) =>
    new EvError(
      'usage',
      `--url is “${cleanText(url, 100)}”, which cannot be used. ${fault}${isPrivate ? PRIVATE_HINT : ''}`,
    ),
  webhook_test_limit_reached: ({ count }) =>
    new EvError('usage', `${count} test events of this account are in flight. Try again later.`),
  delivery_not_found: ({ id, webhookId }) =>
    new EvError(
      'no_input',
      `There is no delivery ${cleanText(id)}${webhookId === null ? '' : ` of the webhook ${cleanText(webhookId)}`}. “ev webhooks deliveries ${webhookId === null ? 'WEBHOOK' : cleanText(webhookId)}” lists those there are; what ended is kept for seven days.`,
    ),
}

const PRIVATE_HINT =
  ' Where it is meant so, allow its range with --webhook-allow-ranges, here and at “ev serve”.'

export const operationSentence = (error: OperationError): EvError =>
  describeOperation(SENTENCES, error)
