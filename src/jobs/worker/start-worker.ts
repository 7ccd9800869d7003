import type { UsageLedger } from '../../accounts/credits/usage-ledger.ts'
import type { Membership } from '../../cluster/membership.ts'
import type { Database } from '../../db/database.ts'
import type { Engine } from '../../engine/engine.ts'
import type { ResultCache } from '../../engine/result-cache.ts'
import type { Log } from '../../platform/log.ts'
import type { Priority } from '../../platform/priority.ts'
import type { Random } from '../../platform/random.ts'
import type { Queue } from '../../queue/queue.ts'
import { getCachedAnswers } from '../cached-answers.ts'
import type { Job } from '../job-store.ts'
import { JobWorker as RunningWorker } from './job-worker.ts'
import type { WorkerTimings } from './worker-timings.ts'

export type WorkerDeps = {
  readonly database: Database
  readonly log: Log
  readonly random: Random
  /** One for all jobs that ask mail servers, as they share its paces; another for simulated ones, which ask none. */
  readonly engineFor: (job: Job) => Engine
  /** Names of those that addresses of lists are asked by; none: that is left to the others. */
  readonly egresses: readonly string[]
  /** Shared by all members of a cluster; of this process alone when left out. */
  readonly queue?: Queue
  /** Those that work on the same jobs; null, or left out: this process alone does. */
  readonly cluster?: WorkerMembership | null
  /** Conversations at the same time, over all operators. */
  readonly concurrency: number
  /** How long a greylisted item waits, in ms; null: what the server says. */
  readonly greylistDelayMs: number | null
  /** False: what should be asked again later ends as it is. */
  readonly wait: (job: Job) => boolean
  /** Where verifications of accounts are entered; null: there are no accounts here. */
  readonly ledger: UsageLedger | null
  /** For the addresses in events; without a slash at its end. */
  readonly baseUrl: string
  /** False: where results cannot be written, work on their jobs ends. Left out: that is tried until it succeeds. */
  readonly keepsTrying?: boolean
  readonly timings?: WorkerTimings
  /** Requests that go first; null, or left out: there are none. */
  readonly priority?: Priority | null
  /** The job as it stands after a commit. */
  readonly onProgress?: (job: Job) => void
  /** Work on a job ended before its time: it was cancelled or deleted, or cannot be worked on. */
  readonly onFailure?: (jobId: string, error: unknown) => void
}

/** What a crew needs to know of how this process stands among those that share its database. */
export type WorkerMembership = Pick<Membership, 'id' | 'onLost' | 'onSilent'>

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
