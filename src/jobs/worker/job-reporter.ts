import type { Database } from '../../db/database.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { writeLog } from '../../platform/log.ts'
import { refuseCancelled } from '../job-state.ts'
import { findJob, type Job } from '../job-store.ts'
import { JOB_LOG } from '../telemetry.ts'
import type { ActiveJobs } from './active-jobs.ts'
import type { WorkerDeps } from './worker-deps.ts'

type JobReporterDeps = Pick<WorkerDeps, 'log' | 'onProgress' | 'onFailure'> & {
  readonly database: Database
  readonly activeJobs: ActiveJobs
  /** Ends work on a job. */
  readonly drop: (jobId: string) => void
}

/** Calls the callbacks of a worker. A callback that throws ends the job. */
export class JobReporter {
  readonly #deps: JobReporterDeps

  constructor(deps: JobReporterDeps) {
    this.#deps = deps
  }

  progressed(job: Job): void {
    try {
      this.#deps.onProgress?.(job)
    } catch (error) {
      const message = `onProgress of a job failed: ${errorMessage(error)}`
      this.failed(job.id, new EvError('internal', message, { cause: error }))
    }
  }

  /** Handles a job that another process cancelled or deleted. */
  async lost(jobId: string): Promise<void> {
    const { database, activeJobs, drop } = this.#deps
    if (activeJobs.get(jobId) === undefined) return
    try {
      drop(jobId)
      const job = await findJob(database, jobId)
      if (job !== null) refuseCancelled(job)
    } catch (error) {
      this.failed(jobId, error)
    }
  }

  failed(jobId: string, error: unknown): void {
    const { activeJobs, log, onFailure } = this.#deps
    activeJobs.drop(jobId)
    try {
      onFailure?.(jobId, error)
    } catch (thrown) {
      const fields = { job: jobId, error: errorMessage(thrown), failure: errorMessage(error) }
      writeLog(log, JOB_LOG.onFailureFailed, fields)
    }
  }
}
