import { formatNumber, pluralize } from '../platform/format.ts'
import { createErrors, type LabelField } from '../platform/operation-error.ts'
import { sanitizeText } from '../platform/text.ts'

const ERRORS = {
  webhook_not_found: ({ id }: { readonly id: string }) =>
    `Webhook ${sanitizeText(id)} does not exist.`,
  webhook_disabled: ({ id }: { readonly id: string }) =>
    `Webhook ${id} is disabled, so nothing is sent to it.`,
  webhook_limit_reached: ({ count }: { readonly count: number }) =>
    `The account has ${formatNumber(count)} webhooks, which is the maximum.`,
  webhook_url_rejected: ({ field, url, fault }: UrlFacts, label: LabelField) =>
    `${label(field)} is "${sanitizeText(url, 100)}", which is not allowed. ${fault}`,
  webhook_header_rejected: (
    // The fault is a sentence.
    { name, fault }: { readonly name: string; readonly fault: string },
    label: LabelField,
  ) => `${label('headers')} has "${sanitizeText(name, 100)}", which is not allowed. ${fault}`,
  webhook_test_limit_reached: ({ count }: { readonly count: number }) =>
    `The account has ${pluralize(count, 'test event')} in flight, which is the maximum. Wait until one has finished.`,
  event_not_found: ({ id }: { readonly id: string }) => `Event ${sanitizeText(id)} does not exist.`,
  delivery_not_found: ({ id, webhookId }: DeliveryFacts) =>
    `Delivery ${sanitizeText(id)}${webhookId === null ? '' : ` of webhook ${sanitizeText(webhookId)}`} does not exist. Completed deliveries are kept for seven days.`,
}

type UrlFacts = {
  /** The field that had the URL. */
  readonly field: 'url' | 'webhook_url'
  readonly url: string
  /** The problem with the URL, as a sentence. */
  readonly fault: string
  /** Whether the URL would be accepted if its address range were allowed. */
  readonly isPrivate: boolean
}

type DeliveryFacts = {
  readonly id: string
  /** Null if no webhook was named. */
  readonly webhookId: string | null
}

type Errors = typeof ERRORS

declare module '../platform/operation-error.ts' {
  interface OperationErrors extends Errors {}
}

/** Creates the errors of webhooks and their deliveries. */
export const webhookError = createErrors(ERRORS)
