import type { Job } from '../../store/jobs.ts'
import { duration } from './progress.ts'

/** How a job ended, for people. */
export function summary(job: Job, doneNow: number, tookMs: number, output: string): string {
  const share = (count: number) =>
    `${String(count).padStart(9)}  ${job.total === 0 ? 0 : ((100 * count) / job.total).toFixed(1)} %`
  const rate = tookMs > 0 ? Math.round((doneNow * 1_000) / tookMs) : 0
  return [
    '',
    `  deliverable   ${share(job.deliverable)}`,
    `  risky         ${share(job.risky)}`,
    `  undeliverable ${share(job.undeliverable)}`,
    `  unknown       ${share(job.unknown)}`,
    '',
    `${job.total} rows in ${duration(tookMs / 1_000)} (${rate}/s)${output === '-' ? '' : `, written to ${output}`}.`,
  ].join('\n')
}

/** The same, for programs. */
export function summaryObject(job: Job, output: string) {
  return {
    job_id: job.id,
    output,
    total: job.total,
    duplicates: job.duplicates,
    deliverable: job.deliverable,
    risky: job.risky,
    undeliverable: job.undeliverable,
    unknown: job.unknown,
  }
}
