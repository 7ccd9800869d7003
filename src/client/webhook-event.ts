import type { SingleResult } from './types.ts'

/** An event as delivered to a webhook; `event` determines the type of `data`. */
export type WebhookEvent = {
  [Kind in keyof EventData]: {
    readonly event: Kind
    /** The same for every attempt; use it to ignore duplicates. */
    readonly event_id: string
    readonly timestamp: string
    /** Present and true for simulated events. */
    readonly sandbox?: true
    readonly data: EventData[Kind]
  }
}[keyof EventData]

/** Data of each event type. */
export type EventData = {
  'batch.completed': {
    readonly job_id: string
    readonly total: number
    /** Deliverable addresses only; a job's summary counts risky ones as valid too. */
    readonly valid: number
    readonly invalid: number
    readonly risky: number
    readonly unknown: number
    readonly failed: number
    readonly download_url: string
    /** As submitted with the list. */
    readonly metadata: Readonly<Record<string, string>>
    /** The job that this one verifies again. */
    readonly previous_job_id?: string
    /** The schedule that created the job. */
    readonly schedule_id?: string
  }
  'batch.failed': {
    readonly job_id: string
    readonly total: number
    readonly processed: number
    readonly error: string
    readonly message: string
    readonly metadata: Readonly<Record<string, string>>
    /** The job that this one verifies again. */
    readonly previous_job_id?: string
    /** The schedule that created the job. */
    readonly schedule_id?: string
  }
  'verification.completed': SingleResult & {
    readonly verification_id: string
    readonly metadata: Readonly<Record<string, string>>
  }
  'quota.warning': Quota
  'quota.exceeded': Quota
  /** Sent only by the test operation. */
  'webhook.test': { readonly webhook_id: string; readonly message: string }
}

type Quota = {
  readonly plan: string
  readonly limit: number
  readonly used: number
  readonly remaining: number
  readonly threshold_percent: number
  readonly resets_at: string
}
