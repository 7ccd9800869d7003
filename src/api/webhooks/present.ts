import { isoTime } from '../../engine/verdict/present-result.ts'
import { successRate } from '../../webhooks/daily-attempts.ts'
import type { Webhook } from '../../webhooks/endpoint-store.ts'

/** An endpoint without its secret. */
export const presentWebhook = (webhook: Webhook) => ({
  ...presentFields(webhook),
  secret_hint: webhook.secretHint,
  ...presentStatus(webhook),
  ...presentGracePeriod(webhook),
})

/** An endpoint with its secret, which is only returned after creation and rotation. */
export const presentWithSecret = (webhook: Webhook, secret: string) => ({
  ...presentFields(webhook),
  secret,
  ...presentStatus(webhook),
})

const presentFields = ({ id, url, events, active, description, headers, jobId }: Webhook) => ({
  ...{ id, url, events: [...events], active, description },
  ...(jobId === null ? {} : { job_id: jobId }),
  header_names: Object.keys(headers),
})

const presentStatus = ({ createdAt, updatedAt, failingSince, ...webhook }: Webhook) => ({
  created_at: isoTime(createdAt),
  updated_at: isoTime(updatedAt),
  disabled_reason: webhook.disabledReason,
  disabled_code: webhook.disabledCode,
  failing_since: failingSince === null ? null : isoTime(failingSince),
  success_rate: successRate(webhook.dailyAttempts),
  daily_attempts: [...webhook.dailyAttempts],
})

/** Present after a rotation, while the previous secret is stored. */
const presentGracePeriod = ({ previousSecret }: Webhook) =>
  previousSecret === null ? {} : { previous_secret_expires_at: isoTime(previousSecret.until) }
