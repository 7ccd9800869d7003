import type { Job } from '../../jobs/job-store.ts'
import { isoTime } from '../../platform/format.ts'

/**
 * Presents the progress of a list. Reacher knows no lists that fail or are cancelled: such a list is
 * completed, and the rest of its addresses is unknown.
 */
export function presentProgress(job: Job) {
  const rest = job.finished_at === null ? 0 : job.total - job.done
  return {
    job_id: job.number,
    created_at: isoTime(job.created_at),
    finished_at: job.finished_at === null ? null : isoTime(job.finished_at),
    total_records: job.total,
    total_processed: job.done + rest,
    summary: {
      total_safe: job.deliverable,
      total_risky: job.risky,
      total_invalid: job.undeliverable,
      total_unknown: job.unknown + rest,
    },
    job_status: job.finished_at === null ? 'Running' : 'Completed',
  }
}
