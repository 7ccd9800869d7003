import {
  getListName,
  getProgress,
  type Job,
  parseMetadata,
  parseOrigin,
  parseWebhookId,
} from '../../jobs/job-store.ts'
import { isoTimeOrNull } from '../print.ts'
import type { JobStatus, JobView } from '../remote/jobs.ts'
import { listAndOutput } from './job-status.ts'

/** Returns the JSON form of a job. A list that is still loading has no rows yet. */
export function toView(job: Job, state: JobStatus): JobView {
  const { list, output } = listAndOutput(job)
  const { previousJobId, scheduleId } = parseOrigin(job)
  return {
    job_id: job.id,
    type: job.type,
    state,
    account_id: job.account_id,
    name: getListName(job),
    metadata: parseMetadata(job),
    webhook_id: parseWebhookId(job),
    previous_job_id: previousJobId,
    schedule_id: scheduleId,
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
