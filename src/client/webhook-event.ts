import type { SingleResult } from './types.ts'

/** An event as a webhook gets it; `event` says what `data` is. */
export type WebhookEvent = {
  [Kind in keyof EventData]: {
    readonly event: Kind
    /** The same at every attempt: an event that is known already can be left out. */
    readonly event_id: string
    readonly timestamp: string
    /** There, and true, when what happened was simulated. */
    readonly sandbox?: true
    readonly data: EventData[Kind]
  }
}[keyof EventData]

/** What comes with each kind of event. */
export type EventData = {
  'batch.completed': {
    readonly job_id: string
    readonly total: number
    /** The deliverable ones alone; a job's summary counts the risky ones as valid too. */
    readonly valid: number
    readonly invalid: number
    readonly risky: number
    readonly unknown: number
    readonly failed: number
    readonly download_url: string
  }
  'batch.failed': {
    readonly job_id: string
    readonly total: number
    readonly processed: number
    readonly error: string
    readonly message: string
  }
  'verification.completed': { readonly verification_id: string } & SingleResult
  'quota.warning': Quota
  'quota.exceeded': Quota
  /** Sent when it is asked for. */
  'webhook.test': { readonly webhook_id: string; readonly message: string }
}

export type Quota = {
  readonly plan: string
  readonly limit: number
  readonly used: number
  readonly remaining: number
  readonly threshold_percent: number
  readonly resets_at: string
}
