import { SECOND } from '../../platform/clock.ts'
import type { Job } from '../job-store.ts'
import { simulatedMs } from './estimate.ts'
import type { WaitReport } from './wait-report.ts'

/**
 * Estimates the remaining time of a job, in ms: the one estimate that the API, the dashboard and the
 * command line show. Rows that wait until a known time need at least that long; the others go on at
 * the measured `rate`, in rows per second, or at typical rates while none is known. Null if the job
 * has finished, or if nothing is known: no figure is better than a wrong one.
 */
export function estimateTimeLeft(
  job: Pick<Job, 'total' | 'done' | 'sandbox' | 'finished_at'>,
  rate: number | null,
  report: WaitReport,
): number | null {
  if (job.finished_at !== null || report.isOpenEnded) return null
  const moving = Math.max(0, job.total - job.done - report.waitingRows)
  const movingMs = estimateMoving(
    moving,
    rate,
    job.sandbox === 1 ? simulatedMs(moving) : report.movingMs,
  )
  if (movingMs !== null) return Math.max(movingMs, report.waitingMs)
  return report.waitingMs > 0 ? report.waitingMs : null
}

function estimateMoving(
  rows: number,
  rate: number | null,
  typicalMs: number | null,
): number | null {
  if (rows === 0) return 0
  if (rate === null) return typicalMs
  return rate === 0 ? null : (rows * SECOND) / rate
}
