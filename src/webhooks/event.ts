import type { Random } from '../platform/random.ts'

/** What a webhook can subscribe to (spec section 6). */
export const EVENT_KINDS = [
  'batch.completed',
  'batch.failed',
  'verification.completed',
  'quota.warning',
  'quota.exceeded',
] as const

export type EventKind = (typeof EVENT_KINDS)[number]

export const isEventKind = (text: string): text is EventKind =>
  (EVENT_KINDS as readonly string[]).includes(text)

/** What an endpoint is tried out with: sent to it whatever it subscribed to. */
export const TEST_KIND = 'webhook.test'

/** What is sent, and what the log of deliveries knows. */
export const SENT_KINDS = [...EVENT_KINDS, TEST_KIND] as const

export type SentKind = (typeof SENT_KINDS)[number]

export type NewEvent = {
  /** `evt_…` */
  readonly id: string
  readonly kind: SentKind
  /** When it happened, epoch ms. */
  readonly at: number
  readonly data: object
  readonly sandbox: boolean
}

/**
 * The body that is sent for an event (spec 2.8). It is made once and kept, because a signature is of bytes and
 * every attempt sends the same. What was simulated says so beside `data`, which has the same shape always.
 */
export function eventBody({ id, kind, at, data, sandbox }: NewEvent): string {
  return JSON.stringify({
    event: kind,
    event_id: id,
    timestamp: new Date(at).toISOString(),
    ...(sandbox ? { sandbox: true } : {}),
    data,
  })
}

/** Whether the event of a body of `eventBody` was simulated. */
export const isSandboxBody = (body: string): boolean => SANDBOX_BODY.test(body)

const SANDBOX_BODY = /^\{"event":"[^"]*","event_id":"[^"]*","timestamp":"[^"]*","sandbox":true,/

export const newEventId = (random: Random): string => `evt_${random.token(ID_LENGTH)}`

/** Of one event on its way to one webhook. */
export const newDeliveryId = (random: Random): string => `dlv_${random.token(ID_LENGTH)}`

/** 103 bits of chance: IDs of events are for telling them apart, for ever. */
const ID_LENGTH = 20

/** How a job stood when it ended. */
type JobCounts = {
  readonly jobId: string
  readonly total: number
  readonly done: number
  readonly deliverable: number
  readonly risky: number
  readonly undeliverable: number
  /** With those that something inside ev ended. */
  readonly unknown: number
  readonly failed: number
  /** The code of what ended it, where it failed. */
  readonly error: string | null
}

/** Where the results of a job are. It carries no credential: a request for it needs an API key (ASVS 14.2.1). */
export const downloadUrl = (baseUrl: string, jobId: string): string =>
  `${baseUrl}/v1/jobs/${jobId}/download`

/**
 * The data of `batch.completed`. Here `valid` are the deliverable ones alone, beside `risky`, as in the spec's
 * example; a job's status counts both as valid: `summary.valid` = `valid` + `risky`.
 */
export function batchCompleted(counts: JobCounts, baseUrl: string) {
  return {
    job_id: counts.jobId,
    total: counts.total,
    valid: counts.deliverable,
    invalid: counts.undeliverable,
    risky: counts.risky,
    unknown: counts.unknown - counts.failed,
    failed: counts.failed,
    download_url: downloadUrl(baseUrl, counts.jobId),
  }
}

/** The data of `batch.failed`. */
export function batchFailed(counts: JobCounts) {
  return {
    job_id: counts.jobId,
    total: counts.total,
    processed: counts.done,
    error: counts.error ?? 'server_error',
    message: JOB_FAILED,
  }
}

/** What is said of a job that failed; the log says more. */
export const JOB_FAILED = 'The job could not be finished'

type Quota = {
  readonly plan: string
  readonly limit: number
  readonly used: number
  /** 80, 95 or 100. */
  readonly thresholdPercent: number
  /** Epoch ms. */
  readonly resetsAt: number
}

/** The data of `quota.warning` and `quota.exceeded`. */
export function quotaData({ plan, limit, used, thresholdPercent, resetsAt }: Quota) {
  return {
    plan,
    limit,
    used,
    remaining: Math.max(0, limit - used),
    threshold_percent: thresholdPercent,
    resets_at: new Date(resetsAt).toISOString(),
  }
}
