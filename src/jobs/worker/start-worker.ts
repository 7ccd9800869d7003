import { type WorkerDeps } from './worker-deps.ts'
import type { ResultCache } from '../../engine/result-cache.ts'
import { getCachedAnswers } from '../cached-answers.ts'
import type { Job } from '../job-store.ts'
import { JobWorker as RunningWorker } from './job-worker.ts'

/** Works on jobs; and remembers answers, written together with the results that they belong to. */
export type JobWorkerWithCache = JobWorker & { readonly cache: ResultCache }

/** Begins to work on whatever jobs it is given: those of one list, or all of a service. */
export function startWorker(deps: WorkerDeps): JobWorkerWithCache {
  const jobWorker = new RunningWorker(deps)
  return {
    take: jobId => jobWorker.take(jobId),
    drop: jobId => jobWorker.drop(jobId),
    changed: (jobId, signal) => jobWorker.changed(jobId, signal),
    status: () => jobWorker.status(),
    stop: () => jobWorker.stop(),
    cache: {
      get: keys => getCachedAnswers(deps.database, keys),
      // Durable soon, with its group: nobody waits for it.
      set: async entries => jobWorker.cacheResult(entries),
    },
  }
}

/** Works on jobs, however many, until it is stopped. */
export interface JobWorker {
  /** Takes a queued job up; one that it has already stays as it is. */
  take(jobId: string): void
  /** A job was cancelled or deleted: nothing more is asked for it. */
  drop(jobId: string): void
  /** Resolves with the job as it stands after its next commit, or with null when `signal` aborts. */
  changed(jobId: string, signal: AbortSignal): Promise<Job | null>
  /** Jobs that it has, and entries that wait or run. */
  status(): { readonly jobs: number; readonly waiting: number; readonly running: number }
  /** Lets conversations come to their end, writes what they brought, and resolves when nothing runs. May be called twice. */
  stop(): Promise<void>
}
