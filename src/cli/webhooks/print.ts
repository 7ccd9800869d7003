import { URL_LENGTH_MAX } from '../../outbound/url-policy.ts'
import { sanitizeText } from '../../platform/text.ts'
import { successRate } from '../../webhooks/endpoint.ts'
import type { Webhook } from '../../webhooks/endpoint-store.ts'
import { EVENT_KINDS } from '../../webhooks/event-types.ts'
import { presentWebhook } from '../../webhooks/present.ts'
import type { CliContext } from '../context.ts'
import { timeText } from '../print.ts'
import { type Column, keyValues, table } from '../table.ts'
import { widthOf } from '../width.ts'

/** Formats webhooks without their secrets. */
export const webhooksText = (webhooks: readonly Webhook[], width: number | null): string =>
  table(COLUMNS, webhooks.map(rowOf), width)

/** Formats one webhook without its secret. */
export const webhookText = (context: CliContext, webhook: Webhook): string =>
  `${webhook.id}\n${keyValues(
    [
      ['url', urlText(webhook)],
      ['events', eventsText(webhook)],
      ['state', stateText(webhook)],
      ['secret', hintText(webhook)],
      ['old secret', previousText(context, webhook)],
      ['headers', headersText(webhook)],
      ['success rate', rateText(webhook)],
      ['description', webhook.description === null ? null : sanitizeText(webhook.description)],
      ['account', webhook.accountId],
      ['created', timeText(webhook.createdAt)],
      ['changed', timeText(webhook.updatedAt)],
    ],
    { width: widthOf(context, context.stdout) },
  )}`

/** Returns the JSON form of a webhook, as in the HTTP API. */
export function webhookObject(webhook: Webhook) {
  const { id, ...rest } = presentWebhook(webhook)
  return { id, account_id: webhook.accountId, ...rest }
}

/** Formats a webhook with its new secret, which cannot be shown again. */
export const newSecretText = (webhook: Webhook, secret: string): string =>
  `Webhook ${webhook.id} of account ${webhook.accountId}: ${eventsText(webhook)} to ${urlText(webhook)}

  ${secret}

Store this secret now: ev cannot show it again.

To verify events, compute the HMAC-SHA256 of the raw body in lowercase hex, with the whole secret as the key, and compare it to X-EV-Signature. Or use verifyWebhook from evmail-client, or any Standard Webhooks library.

${
  webhook.active
    ? `To send a test event, run "ev webhooks test ${webhook.id}".`
    : `The webhook is disabled. To enable it, run "ev webhooks enable ${webhook.id}".`
}
`

/** Returns the JSON form of a webhook with its new secret. */
export function newSecretObject(webhook: Webhook, secret: string) {
  const { id, account_id, ...rest } = webhookObject(webhook)
  return { id, secret, account_id, ...rest }
}

export const urlText = ({ url }: Pick<Webhook, 'url'>) => sanitizeText(url, URL_LENGTH_MAX)

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'ACCOUNT', dropRank: 2 },
  { title: 'CREATED', dropRank: 1 },
  { title: 'SECRET', dropRank: 3 },
  { title: 'STATE' },
  { title: 'EVENTS' },
  { title: 'URL' },
]

const rowOf = (webhook: Webhook): string[] => [
  webhook.id,
  webhook.accountId,
  timeText(webhook.createdAt),
  hintText(webhook),
  shortState(webhook),
  eventsText(webhook),
  // The last column, because its width is not limited.
  urlText(webhook),
]

/** Omits the reason why ev disabled a webhook, which is a sentence; `ev webhooks show` has it. */
const shortState = (webhook: Webhook) =>
  webhook.active || webhook.disabledReason === null ? stateText(webhook) : 'disabled by ev'

function stateText({ active, disabledReason, failingSince }: Webhook): string {
  if (!active) {
    return disabledReason === null ? 'disabled' : `disabled: ${sanitizeText(disabledReason)}`
  }
  return failingSince === null ? 'enabled' : `enabled, failing since ${timeText(failingSince)}`
}

export const eventsText = ({ events }: Pick<Webhook, 'events'>) =>
  EVENT_KINDS.every(kind => events.includes(kind)) ? 'all events' : events.join(', ')

const headersText = ({ headers }: Webhook) =>
  Object.keys(headers).length === 0 ? null : `${Object.keys(headers).join(', ')} (values hidden)`

function rateText({ dailyAttempts: days }: Webhook): string | null {
  const [rate, from, to] = [successRate(days), days[0]?.date, days.at(-1)?.date]
  if (rate === null) return null
  return `${Math.round(rate * 1_000) / 10}% of attempts, ${from === to ? from : `${from} to ${to}`}`
}

const hintText = ({ secretHint }: Webhook) => `…${secretHint}`

function previousText(
  context: Pick<CliContext, 'clock'>,
  { previousSecret }: Webhook,
): string | null {
  if (previousSecret === null || previousSecret.until <= context.clock.now()) return null
  return `also signs until ${timeText(previousSecret.until)}`
}
