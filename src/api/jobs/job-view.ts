import { getListName, getProgress, type Job, parseJobFields } from '../../jobs/job-store.ts'
import { describeWait } from '../../jobs/waits/wait-report.ts'
import { formatEstimate, isoTime } from '../../platform/format.ts'
import { downloadUrl, JOB_FAILED } from '../../webhooks/event.ts'
import type { ApiDeps } from '../api-deps.ts'
import { type Outlook, presentOutlook } from './outlook.ts'

export type JobViewDeps = Pick<ApiDeps, 'settings'>

/**
 * The status of a job. The caller adds results to `data`. `outlook` is null if the job is
 * finished.
 */
export function presentStatus(job: Job, outlook: Outlook | null) {
  return {
    success: true as const,
    job_id: job.id,
    status: job.state as Exclude<Job['state'], 'loading'>,
    progress: getProgress(job),
    total_emails: job.total,
    processed_emails: job.done,
    estimated_time: outlook?.leftMs == null ? null : formatEstimate(outlook.leftMs),
    created_at: isoTime(job.created_at),
    started_at: job.started_at === null ? null : isoTime(job.started_at),
    error:
      job.state === 'failed' ? { code: job.error ?? 'server_error', message: JOB_FAILED } : null,
    ...(job.sandbox === 1 ? { sandbox: true as const } : {}),
    data: {
      summary: presentSummary(job),
      completed_at: job.finished_at === null ? null : isoTime(job.finished_at),
    },
  }
}

/** The status of a job with the fields of the newer endpoints. */
export function presentJob(service: JobViewDeps, job: Job, outlook: Outlook | null) {
  const { data, ...status } = presentStatus(job, outlook)
  const { baseUrl } = service.settings
  const download_url = job.state === 'completed' ? downloadUrl(baseUrl, job.id) : null
  const [first] = outlook?.waits ?? []
  const { finish_requested_at: finishAt } = job
  const { metadata, webhookId, previousJobId, scheduleId } = parseJobFields(job)
  return {
    ...status,
    ...(first === undefined ? {} : { status_detail: describeWait(first) }),
    ...(outlook === null ? {} : presentOutlook(outlook)),
    type: jobType(job),
    name: getListName(job),
    metadata,
    ...(webhookId === null ? {} : { webhook_id: webhookId }),
    ...(previousJobId === null ? {} : { previous_job_id: previousJobId }),
    ...(scheduleId === null ? {} : { schedule_id: scheduleId }),
    ...(finishAt === null ? {} : { finish_requested_at: isoTime(finishAt) }),
    data: { ...data, classes: presentClasses(job), no_address: job.no_address, download_url },
  }
}

/**
 * Counts that add up to the processed rows. If the job was cancelled or failed, they add up to all
 * rows: rows that were never tried count as failed.
 */
export function presentSummary(job: Job) {
  const endedEarly = job.state === 'failed' || job.state === 'cancelled'
  return {
    total: job.total,
    valid: job.deliverable + job.risky,
    invalid: job.undeliverable,
    unknown: job.unknown - job.failed,
    failed: job.failed + (endedEarly ? job.total - job.done : 0),
  }
}

/** Counts that add up to the processed rows. */
export const presentClasses = ({ deliverable, risky, undeliverable, unknown }: Job) => ({
  deliverable,
  risky,
  undeliverable,
  unknown,
})

/** Lists of the CLI have no account, so the API never returns one. */
const jobType = ({ type }: Job) => type as Exclude<Job['type'], 'list'>
