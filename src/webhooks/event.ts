import type { Random } from '../platform/random.ts'
import type { EventData, SentKind } from './event-types.ts'

type NewEvent = {
  /** `evt_…` */
  readonly id: string
  readonly kind: SentKind
  /** Time of the event, epoch ms. */
  readonly at: number
  readonly data: object
  readonly sandbox: boolean
}

/**
 * Serializes an event (spec 2.8). The result is stored, because the signature covers the bytes and
 * every attempt must send the same. A sandbox event has `sandbox: true` beside `data`; `data`
 * always has the same shape.
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

/** Whether a body from `eventBody` is a sandbox event. */
export const isSandboxBody = (body: string): boolean => SANDBOX_BODY.test(body)

const SANDBOX_BODY = /^\{"event":"[^"]*","event_id":"[^"]*","timestamp":"[^"]*","sandbox":true,/

export const newEventId = (random: Random): string => `evt_${random.token(ID_LENGTH)}`

/** Creates the ID of a delivery: one event to one webhook. */
export const newDeliveryId = (random: Random): string => `dlv_${random.token(ID_LENGTH)}`

/** 103 bits of entropy: event IDs must be unique forever. */
const ID_LENGTH = 20

/** The counts of a finished job. */
type JobCounts = {
  readonly jobId: string
  readonly total: number
  readonly done: number
  readonly deliverable: number
  readonly risky: number
  readonly undeliverable: number
  /** Including items that failed because of an error inside ev. */
  readonly unknown: number
  readonly failed: number
  /** Error code, if the job failed. */
  readonly error: string | null
  /** Key-value pairs of its submitter. */
  readonly metadata: Readonly<Record<string, string>>
  /** The job that it verifies again; null if there is none. */
  readonly previousJobId: string | null
  /** The schedule that created it; null if there is none. */
  readonly scheduleId: string | null
}

/** The fields of a job that verifies another one again. */
const originFields = ({
  previousJobId,
  scheduleId,
}: JobCounts): { previous_job_id?: string; schedule_id?: string } => ({
  ...(previousJobId === null ? {} : { previous_job_id: previousJobId }),
  ...(scheduleId === null ? {} : { schedule_id: scheduleId }),
})

/**
 * The URL of the results of a job. It contains no credential: the request needs an API key (ASVS
 * 14.2.1).
 */
export const downloadUrl = (baseUrl: string, jobId: string): string =>
  `${baseUrl}/v1/jobs/${jobId}/download`

/**
 * The data of `batch.completed`. `valid` counts deliverable addresses only, beside `risky`, as in
 * the spec's example; the status of a job counts both: `summary.valid` = `valid` + `risky`.
 */
export function batchCompleted(counts: JobCounts, baseUrl: string): EventData['batch.completed'] {
  return {
    job_id: counts.jobId,
    total: counts.total,
    valid: counts.deliverable,
    invalid: counts.undeliverable,
    risky: counts.risky,
    unknown: counts.unknown - counts.failed,
    failed: counts.failed,
    download_url: downloadUrl(baseUrl, counts.jobId),
    metadata: counts.metadata,
    ...originFields(counts),
  }
}

/** The data of `batch.failed`. */
export function batchFailed(counts: JobCounts): EventData['batch.failed'] {
  return {
    job_id: counts.jobId,
    total: counts.total,
    processed: counts.done,
    error: counts.error ?? 'server_error',
    message: JOB_FAILED,
    metadata: counts.metadata,
    ...originFields(counts),
  }
}

/** The public message of a failed job; the log has the details. */
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
export function quotaData({
  plan,
  limit,
  used,
  thresholdPercent,
  resetsAt,
}: Quota): EventData['quota.warning'] {
  return {
    plan,
    limit,
    used,
    remaining: Math.max(0, limit - used),
    threshold_percent: thresholdPercent,
    resets_at: new Date(resetsAt).toISOString(),
  }
}
