import { presentWebhook } from '../../api/webhooks/present.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Webhook } from '../../webhooks/endpoint-store.ts'
import { EVENT_KINDS } from '../../webhooks/event.ts'
import { URL_LENGTH_MAX } from '../../webhooks/webhook-url.ts'
import type { CliContext } from '../context.ts'
import { timeText } from '../jobs/time-text.ts'
import { keyValues } from '../key-values.ts'
import { type Column, table } from '../table.ts'

/** Webhooks without their secrets, for people. */
export const webhooksText = (webhooks: readonly Webhook[]): string =>
  table(COLUMNS, webhooks.map(rowOf))

/** One webhook, for people. */
export const webhookText = (context: Pick<CliContext, 'clock'>, webhook: Webhook): string =>
  `${webhook.id}\n${keyValues([
    ['url', urlText(webhook)],
    ['events', eventsText(webhook)],
    ['state', stateText(webhook)],
    ['secret', hintText(webhook)],
    ['old secret', previousText(context, webhook)],
    ['description', webhook.description === null ? null : sanitizeText(webhook.description)],
    ['account', webhook.accountId],
    ['created', timeText(webhook.createdAt)],
    ['changed', timeText(webhook.updatedAt)],
  ])}`

/** One webhook, for programs: as the HTTP API shows it. */
export function webhookObject(webhook: Webhook) {
  const { id, ...rest } = presentWebhook(webhook)
  return { id, account_id: webhook.accountId, ...rest }
}

/** A webhook with a secret of which nobody sees more than its end from now on; for people. */
export const newSecretText = (webhook: Webhook, secret: string): string =>
  `Webhook ${webhook.id} of the account ${webhook.accountId}: ${eventsText(webhook)} to ${urlText(webhook)}

  ${secret}

It is shown this once. To check what arrives: X-EV-Signature is the HMAC-SHA256, in lower-case hex, of the raw body,
keyed with this whole text; or use “verifyWebhook” of ev/client, or any library of Standard Webhooks.
${
  webhook.active
    ? `“ev webhooks test ${webhook.id}” sends an event to it now.`
    : `It is off: nothing is sent to it until “ev webhooks enable ${webhook.id}”.`
}
`

/** The same, for programs. */
export function newSecretObject(webhook: Webhook, secret: string) {
  const { id, account_id, ...rest } = webhookObject(webhook)
  return { id, secret, account_id, ...rest }
}

export const urlText = ({ url }: Pick<Webhook, 'url'>) => sanitizeText(url, URL_LENGTH_MAX)

export const printJson = (context: CliContext, value: unknown) =>
  void context.stdout.write(`${JSON.stringify(value, null, 2)}\n`)

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'ACCOUNT' },
  { title: 'CREATED' },
  { title: 'SECRET' },
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
  // Last, as its width is anybody's.
  urlText(webhook),
]

/** Why ev switched it off takes a sentence, which `ev webhooks show` has. */
const shortState = (webhook: Webhook) =>
  webhook.active || webhook.disabledReason === null ? stateText(webhook) : 'switched off by ev'

function stateText({ active, disabledReason, failingSince }: Webhook): string {
  if (!active) return disabledReason === null ? 'off' : `off: ${sanitizeText(disabledReason)}`
  return failingSince === null ? 'on' : `on, failing since ${timeText(failingSince)}`
}

export const eventsText = ({ events }: Pick<Webhook, 'events'>) =>
  EVENT_KINDS.every(kind => events.includes(kind)) ? 'all events' : events.join(',')

const hintText = ({ secretHint }: Webhook) => `…${secretHint}`

function previousText(
  context: Pick<CliContext, 'clock'>,
  { previousSecret }: Webhook,
): string | null {
  if (previousSecret === null || previousSecret.until <= context.clock.now()) return null
  return `signs beside it until ${timeText(previousSecret.until)}`
}
