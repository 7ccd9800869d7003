import { URL_LENGTH_MAX } from '../../outbound/url-policy.ts'
import { sanitizeText } from '../../platform/text.ts'
import { EVENT_KINDS } from '../../webhooks/event-types.ts'
import type { CliContext } from '../context.ts'
import { timeText } from '../print.ts'
import type { OwnedWebhook } from '../remote/webhooks.ts'
import { type Column, keyValues } from '../table.ts'
import { widthOf } from '../width.ts'

/** Formats one webhook without its secret. */
export const webhookText = (context: CliContext, webhook: OwnedWebhook): string =>
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
      ['account', webhook.account_id],
      ['created', timeText(Date.parse(webhook.created_at))],
      ['changed', timeText(Date.parse(webhook.updated_at))],
    ],
    { width: widthOf(context, context.stdout) },
  )}`

/** Formats a webhook with its new secret, which cannot be shown again. */
export const newSecretText = (webhook: OwnedWebhook, secret: string): string =>
  `Webhook ${webhook.id} of account ${webhook.account_id}: ${eventsText(webhook)} to ${urlText(webhook)}

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
export function newSecretObject(webhook: OwnedWebhook, secret: string) {
  const { id, account_id, ...rest } = webhook
  return { id, secret, account_id, ...rest }
}

export const urlText = ({ url }: Pick<OwnedWebhook, 'url'>) => sanitizeText(url, URL_LENGTH_MAX)

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'ACCOUNT', dropRank: 2 },
  { title: 'CREATED', dropRank: 1 },
  { title: 'SECRET', dropRank: 3 },
  { title: 'STATE' },
  { title: 'EVENTS' },
  { title: 'URL' },
]

const rowOf = (webhook: OwnedWebhook): string[] => [
  webhook.id,
  webhook.account_id,
  timeText(Date.parse(webhook.created_at)),
  hintText(webhook),
  shortState(webhook),
  eventsText(webhook),
  // The last column, because its width is not limited.
  urlText(webhook),
]

/** The table of `ev webhooks list`, without secrets. */
export const WEBHOOK_TABLE = {
  columns: COLUMNS,
  rowOf,
  none: 'No webhooks. To create one, run "ev webhooks create --url URL --events EVENTS".',
}

/** Omits the reason why ev disabled a webhook, which is a sentence; `ev webhooks show` has it. */
const shortState = (webhook: OwnedWebhook) =>
  webhook.active || webhook.disabled_reason === null ? stateText(webhook) : 'disabled by ev'

function stateText({
  active,
  disabled_reason: reason,
  failing_since: since,
}: OwnedWebhook): string {
  if (!active) {
    return reason === null ? 'disabled' : `disabled: ${sanitizeText(reason)}`
  }
  return since === null ? 'enabled' : `enabled, failing since ${timeText(Date.parse(since))}`
}

export const eventsText = ({ events }: Pick<OwnedWebhook, 'events'>) =>
  EVENT_KINDS.every(kind => events.includes(kind)) ? 'all events' : events.join(', ')

const headersText = ({ header_names: names }: OwnedWebhook) =>
  names.length === 0 ? null : `${names.join(', ')} (values hidden)`

function rateText({ success_rate: rate, daily_attempts: days }: OwnedWebhook): string | null {
  const [from, to] = [days[0]?.date, days.at(-1)?.date]
  if (rate === null) return null
  return `${Math.round(rate * 1_000) / 10}% of attempts, ${from === to ? from : `${from} to ${to}`}`
}

const hintText = ({ secret_hint }: OwnedWebhook) => `…${secret_hint}`

function previousText(
  context: Pick<CliContext, 'clock'>,
  { previous_secret_expires_at: expiresAt }: OwnedWebhook,
): string | null {
  const until = expiresAt === undefined ? 0 : Date.parse(expiresAt)
  return until <= context.clock.now() ? null : `also signs until ${timeText(until)}`
}
