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

/** Something that was told to who subscribed to it. */
export type EventTable = {
  id: string
  account_id: string
  kind: string
  /** The JSON that is sent, the same bytes each time. */
  body: string
  created_at: number
}

export type WebhookTable = {
  id: string
  account_id: string
  url: string
  /** JSON: an array of kinds of events. */
  events: string
  active: number
  description: string | null
  /** Sealed: it signs what is sent, so it must be read again. */
  secret: string
  /** Its last characters, to be shown. */
  secret_hint: string
  /** Sealed: the secret before this one, with which is signed beside it until then; null: there is none. */
  previous_secret: string | null
  previous_until: number | null
  created_at: number
  updated_at: number
  /** Why the service switched it off, for people and for programs; null: it did not. */
  disabled_reason: string | null
  disabled_code: DisabledCode | null
  /** When the first of the attempts failed that failed one after the other until now; null: the last one did not. */
  failing_since: number | null
  /** Deleted: its deliveries go in steps, and it goes with the last of them. */
  deleted_at: number | null
}

export type DeliveryState = 'pending' | 'delivered' | 'retry_scheduled' | 'failed'
/** Why it is sent: an event happened, somebody asked for it once more, or somebody tries the endpoint out. */
export type DeliveryTrigger = 'scheduled' | 'manual' | 'test'

/** One event on its way to one webhook. */
export type DeliveryTable = {
  id: string
  event_id: string
  webhook_id: string
  /** That of the event. */
  kind: string
  state: DeliveryState
  trigger: DeliveryTrigger
  /** Attempts of this round; asking for it once more begins another. */
  attempt: number
  due_at: number
  created_at: number
  /** Of the last attempt. */
  status_code: number | null
  duration_ms: number | null
  error: string | null
  error_code: DeliveryError | null
  /** When it is forgotten; null while it is on its way. */
  expires_at: number | null
}

/** One request to a webhook, and what came of it. */
export type AttemptTable = {
  delivery_id: string
  /** 1 for the first of its delivery. */
  number: number
  trigger: DeliveryTrigger
  url: string
  started_at: number
  duration_ms: number
  /** Null: no answer. */
  status_code: number | null
  /** JSON: headers of the answer; null: no answer. */
  headers: string | null
  /** The beginning of the body of the answer, cleaned. */
  excerpt: string | null
  /** What was wrong, in a sentence; null: nothing. */
  error: string | null
  /** The same for programs. */
  error_code: DeliveryError | null
}

/** What the owner of a webhook is to be told; one row for each webhook that was ever in trouble. */
export type NoticeTable = {
  webhook_id: string
  account_id: string
  /** Events that were given up since the last notice. */
  failed_events: number
  last_error: string | null
  /** Why it was switched off since the last notice; null: it was not. */
  disabled_reason: string | null
  /** When the next notice goes out; null: there is nothing to tell. */
  due_at: number | null
  /** When the last one went out. */
  sent_at: number | null
}
