import type { ResultCache } from '../../engine/result-cache.ts'
import { getCachedAnswers } from '../cached-answers.ts'
import { ListWorker } from '../list/list-worker.ts'
import { JobWorker as RunningWorker } from './job-worker.ts'
import type { JobWorker, WorkerDeps } from './worker-deps.ts'

/** A worker with what only its composer uses. */
type StartedWorker = JobWorker & {
  /** Caches answers, which are written together with their results. */
  readonly cache: ResultCache
}

/**
 * Starts a worker for the jobs of a service that are passed to it. Members of a cluster claim each
 * item in the database; a process alone needs no claims.
 */
export function startWorker(deps: WorkerDeps): StartedWorker {
  if ((deps.cluster ?? null) === null) return new ListWorker(deps)
  const jobWorker = new RunningWorker(deps)
  return {
    take: jobId => jobWorker.take(jobId),
    drop: jobId => jobWorker.drop(jobId),
    finish: () => jobWorker.finish(),
    changed: (jobId, signal) => jobWorker.changed(jobId, signal),
    status: () => jobWorker.status(),
    waitingInMemory: () => new Map(),
    stop: () => jobWorker.stop(),
    cache: {
      get: keys => getCachedAnswers(deps.database, keys),
      // Committed soon with its batch; the caller does not wait for it.
      set: async entries => jobWorker.cacheResult(entries),
    },
  }
}
