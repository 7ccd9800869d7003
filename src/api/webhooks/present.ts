import { isoTime } from '../../engine/verdict/present-result.ts'
import type { Webhook } from '../../webhooks/endpoint-store.ts'

/** An endpoint as it is shown: never its secret. */
export const presentWebhook = (webhook: Webhook) => ({
  ...fieldsOf(webhook),
  secret_hint: webhook.secretHint,
  ...restOf(webhook),
  ...graceOf(webhook),
})

/** An endpoint as it is shown once: when it is registered, and when it gets another secret. */
export const presentWithSecret = (webhook: Webhook, secret: string) => ({
  ...fieldsOf(webhook),
  secret,
  ...restOf(webhook),
})

const fieldsOf = ({ id, url, events, active, description }: Webhook) => ({
  ...{ id, url, events: [...events], active, description },
})

const restOf = ({ createdAt, updatedAt, failingSince, ...webhook }: Webhook) => ({
  created_at: isoTime(createdAt),
  updated_at: isoTime(updatedAt),
  disabled_reason: webhook.disabledReason,
  disabled_code: webhook.disabledCode,
  failing_since: failingSince === null ? null : isoTime(failingSince),
})

/** Once it was given another secret. */
const graceOf = ({ previousSecret }: Webhook) =>
  previousSecret === null ? {} : { previous_secret_expires_at: isoTime(previousSecret.until) }
