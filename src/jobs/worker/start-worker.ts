import type { ResultCache } from '../../engine/result-cache.ts'
import { getCachedAnswers } from '../cached-answers.ts'
import type { Job } from '../job-store.ts'
import { JobWorker as RunningWorker } from './job-worker.ts'
import type { WorkerDeps } from './worker-deps.ts'

/** A worker with what only its composer uses. */
type StartedWorker = JobWorker & {
  /** Caches answers, which are written together with their results. */
  readonly cache: ResultCache
}

/** Starts a worker for the jobs of a service that are passed to it. */
export function startWorker(deps: WorkerDeps): StartedWorker {
  const jobWorker = new RunningWorker(deps)
  return {
    take: jobId => jobWorker.take(jobId),
    drop: jobId => jobWorker.drop(jobId),
    finish: () => jobWorker.finish(),
    changed: (jobId, signal) => jobWorker.changed(jobId, signal),
    status: () => jobWorker.status(),
    stop: () => jobWorker.stop(),
    cache: {
      get: keys => getCachedAnswers(deps.database, keys),
      // Committed soon with its batch; the caller does not wait for it.
      set: async entries => jobWorker.cacheResult(entries),
    },
  }
}

/** Processes any number of jobs until it is stopped. */
export interface JobWorker {
  /** Starts a queued job; an active job stays as it is. */
  take(jobId: string): void
  /** Ends work on a job that was cancelled or deleted. */
  drop(jobId: string): void
  /** Gives the waiting items of jobs that are to finish their results now, not at the next poll. */
  finish(): void
  /** Resolves with the job after its next commit, or with null when `signal` aborts. */
  changed(jobId: string, signal: AbortSignal): Promise<Job | null>
  /** Returns the number of active jobs, and of waiting and running tasks. */
  status(): { readonly jobs: number; readonly waiting: number; readonly running: number }
  /**
   * Lets sessions in flight finish, writes their results, and resolves when nothing runs. May be
   * called twice.
   */
  stop(): Promise<void>
}
