import {
  getProgress,
  type Job,
  parseMetadata,
  parseOrigin,
  parseWebhookId,
} from '../../jobs/job-store.ts'
import { type JobStatus, listAndOutput } from './job-status.ts'
import { isoTimeOrNull } from './time-text.ts'

/** Returns the JSON form of a job. A list that is still loading has no rows yet. */
export function jobObject(job: Job, state: JobStatus) {
  const { list, output } = listAndOutput(job)
  return {
    job_id: job.id,
    /** `list` is a job of `ev bulk`; all other types are jobs of the service. */
    type: job.type,
    state,
    account_id: job.account_id,
    name: job.name,
    metadata: parseMetadata(job),
    webhook_id: parseWebhookId(job),
    previous_job_id: parseOrigin(job).previousJobId,
    schedule_id: parseOrigin(job).scheduleId,
    list,
    output,
    total: job.total,
    done: job.done,
    progress: getProgress(job),
    duplicates: job.duplicates,
    deliverable: job.deliverable,
    risky: job.risky,
    undeliverable: job.undeliverable,
    unknown: job.unknown,
    created_at: isoTimeOrNull(job.created_at),
    finished_at: isoTimeOrNull(job.finished_at),
    written_at: isoTimeOrNull(job.written_at),
  }
}
