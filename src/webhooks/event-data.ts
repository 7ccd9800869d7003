/** How a job stood when it ended. */
export type JobCounts = {
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

export type Quota = {
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
