import { isoTime } from '../../engine/result/present.ts'
import type { Webhook } from '../../store/event/webhooks.ts'

/** An endpoint as it is shown: never its secret. */
export const presentWebhook = (webhook: Webhook) => ({
  ...fieldsOf(webhook),
  secret_hint: webhook.secretHint,
  ...restOf(webhook),
})

/** An endpoint as it is shown once. */
export const presentCreated = (webhook: Webhook, secret: string) => ({
  ...fieldsOf(webhook),
  secret,
  ...restOf(webhook),
})

const fieldsOf = ({ id, url, events, active, description }: Webhook) => ({
  ...{ id, url, events: [...events], active, description },
})

const restOf = ({ createdAt, updatedAt, disabledReason }: Webhook) => ({
  created_at: isoTime(createdAt),
  updated_at: isoTime(updatedAt),
  disabled_reason: disabledReason,
})
