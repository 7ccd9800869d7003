import type { SteadyClock } from '../db/steady-clock.ts'
import { isoTime } from '../platform/format.ts'
import type { LoggedDelivery } from './delivery-store.ts'
import { successRate } from './endpoint.ts'
import type { Webhook } from './endpoint-store.ts'
import type { SentKind } from './event-types.ts'
import type { TestOutcome } from './send-test-event.ts'
import type { AttemptTable, DeliveryTable } from './tables.ts'

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
  id,
  url,
  events: [...events],
  active,
  description,
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

/** A delivery as a row of the log. */
export const presentDelivery = (row: DeliveryTable, { active }: Webhook, clock: SteadyClock) => ({
  id: row.id,
  webhook_id: row.webhook_id,
  event_id: row.event_id,
  event: row.kind as SentKind,
  status: row.state,
  attempt: row.attempt,
  trigger: row.trigger,
  status_code: row.status_code,
  duration_ms: row.duration_ms,
  error: row.error,
  error_code: row.error_code,
  // Deliveries to a disabled endpoint wait until it is enabled.
  next_attempt_at: isOpen(row) && active ? isoTime(clock.toWallTime(row.due_at)) : null,
  created_at: isoTime(row.created_at),
  expires_at: row.expires_at === null ? null : isoTime(row.expires_at),
})

type DetailOptions = {
  /** Without signatures, a reader that may not send tests cannot repeat the request. */
  readonly withSignatures: boolean
}

/** A delivery with its request and its responses. */
export const presentDetail = (
  { delivery, body, attempts }: LoggedDelivery,
  webhook: Webhook,
  clock: SteadyClock,
  options: DetailOptions,
) => ({
  ...presentDelivery(delivery, webhook, clock),
  request: presentRequest(delivery, { ...options, body, url: webhook.url, last: attempts.at(-1) }),
  response: presentResponse(attempts.at(-1)),
  attempts: attempts.map(presentAttempt),
})

/** The result of a test event. */
export const presentTest = (outcome: TestOutcome) => ({
  delivery_id: outcome.deliveryId,
  event_id: outcome.eventId,
  event: outcome.kind,
  status: outcome.state,
  status_code: outcome.statusCode,
  duration_ms: outcome.durationMs,
  response_excerpt: outcome.excerpt,
  error: outcome.error,
  error_code: outcome.errorCode,
})

const isOpen = ({ state }: DeliveryTable) => state === 'pending' || state === 'retry_scheduled'

/** The request of the last attempt; before the first one, the request that will be sent. */
const presentRequest = (
  { event_id }: DeliveryTable,
  o: DetailOptions & { body: string; url: string; last: AttemptTable | undefined },
) => ({ url: o.last?.url ?? o.url, headers: requestHeaders(event_id, o), body: o.body })

function requestHeaders(
  eventId: string,
  { last, withSignatures }: DetailOptions & { last: AttemptTable | undefined },
): Record<string, string> {
  const sent = last?.request_headers ?? null
  if (sent === null) return { 'Content-Type': 'application/json', 'webhook-id': eventId }
  const headers = Object.entries(JSON.parse(sent) as Record<string, string>)
  return Object.fromEntries(headers.filter(([name]) => withSignatures || !SIGNATURE.test(name)))
}

const SIGNATURE = /-signature$/i

const presentResponse = (last: AttemptTable | undefined) =>
  last === undefined || last.status_code === null
    ? null
    : {
        status_code: last.status_code,
        headers: parseHeaders(last) ?? {},
        body: last.excerpt ?? '',
      }

const presentAttempt = (attempt: AttemptTable) => ({
  number: attempt.number,
  trigger: attempt.trigger,
  started_at: isoTime(attempt.started_at),
  url: attempt.url,
  status_code: attempt.status_code,
  duration_ms: attempt.duration_ms,
  error: attempt.error,
  error_code: attempt.error_code,
  response_excerpt: attempt.excerpt,
  response_headers: parseHeaders(attempt),
})

const parseHeaders = ({ headers }: AttemptTable) =>
  headers === null ? null : (JSON.parse(headers) as Record<string, string>)
