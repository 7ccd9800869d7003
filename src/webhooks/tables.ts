import type { DeliveryError, DisabledCode } from './endpoint.ts'

declare module '../db/schema.ts' {
  interface Schema {
    event: EventTable
    webhook: WebhookTable
    delivery: DeliveryTable
    attempt: AttemptTable
    notice: NoticeTable
  }
}

/** An event that at least one webhook was subscribed to. */
export type EventTable = {
  id: string
  account_id: string
  kind: string
  /** The JSON that is sent, identical for each attempt. */
  body: string
  created_at: number
}

export type WebhookTable = {
  id: string
  account_id: string
  url: string
  /** JSON: an array of event kinds. */
  events: string
  active: number
  description: string | null
  /** Encrypted, not hashed: it is needed to sign requests. */
  secret: string
  /** Its last characters, for display. */
  secret_hint: string
  /**
   * Encrypted: the previous secret, which also signs until `previous_until`; null if there is none.
   */
  previous_secret: string | null
  previous_until: number | null
  created_at: number
  updated_at: number
  /** Why the service disabled it, as message and code; null if it did not. */
  disabled_reason: string | null
  disabled_code: DisabledCode | null
  /** Start of the current series of failed attempts; null if the last one succeeded. */
  failing_since: number | null
  /**
   * Set when it is deleted: its deliveries are deleted in steps, and the row with the last of them.
   */
  deleted_at: number | null
  /** JSON: custom request headers by name, each value encrypted; null if there are none. */
  headers: string | null
  /** JSON: attempts by day, an array of `DailyAttempts`; null if there were none. */
  daily_attempts: string | null
  /** The job whose events alone it gets; null for an endpoint of the account. */
  job_id: string | null
}

export type DeliveryState = 'pending' | 'delivered' | 'retry_scheduled' | 'failed'
/** Why it is sent: an event, a manual retry, or a test. */
export type DeliveryTrigger = 'scheduled' | 'manual' | 'test'

/** The delivery of one event to one webhook. */
export type DeliveryTable = {
  id: string
  event_id: string
  webhook_id: string
  /** Kind of the event. */
  kind: string
  state: DeliveryState
  trigger: DeliveryTrigger
  /** Attempts in this cycle; a manual retry starts a new cycle. */
  attempt: number
  due_at: number
  created_at: number
  /** Result of the last attempt. */
  status_code: number | null
  duration_ms: number | null
  error: string | null
  error_code: DeliveryError | null
  /** When it is deleted; null while it is open. */
  expires_at: number | null
}

/** One request to a webhook and its result. */
export type AttemptTable = {
  delivery_id: string
  /** Number within its delivery, from 1. */
  number: number
  trigger: DeliveryTrigger
  url: string
  started_at: number
  duration_ms: number
  /** Null if there was no response. */
  status_code: number | null
  /** JSON: response headers; null if there was no response. */
  headers: string | null
  /** Start of the response body, sanitized. */
  excerpt: string | null
  /** Error message; null if the attempt succeeded. */
  error: string | null
  error_code: DeliveryError | null
  /** JSON: request headers, without the values of custom headers; null if nothing was sent. */
  request_headers: string | null
}

/** A pending alert about a webhook; one row per webhook that ever had one. */
export type NoticeTable = {
  webhook_id: string
  account_id: string
  /** Events that failed for good since the last alert. */
  failed_events: number
  last_error: string | null
  /** Why it was disabled since the last alert; null if it was not. */
  disabled_reason: string | null
  /** When the next alert is due; null if there is nothing to report. */
  due_at: number | null
  /** When the last alert was sent. */
  sent_at: number | null
}
