import type { UsageLedger } from '../../accounts/credits/usage-ledger.ts'
import type { Membership } from '../../cluster/membership.ts'
import type { Database } from '../../db/database.ts'
import type { Engine } from '../../engine/engine.ts'
import type { FailedLookups } from '../../engine/scheduler/scheduler.ts'
import type { ActionPolicy } from '../../engine/verdict/action.ts'
import type { FeedbackKnowledge } from '../../feedback/knowledge.ts'
import type { Log } from '../../platform/log.ts'
import type { Priority } from '../../platform/priority.ts'
import type { Random } from '../../platform/random.ts'
import type { Queue } from '../../queue/queue.ts'
import type { Job } from '../job-store.ts'
import type { WorkerTimings } from './worker-timings.ts'

export type WorkerDeps = {
  readonly database: Database
  readonly log: Log
  readonly random: Random
  /**
   * Returns the engine of a job: one for all jobs that probe mail servers, because they share its
   * rate limits; another for simulated jobs, which probe no mail servers.
   */
  readonly engineFor: (job: Job) => Engine
  /** Names of the egresses that probe lists; empty if that is left to other members. */
  readonly egresses: readonly string[]
  /** Wakes members of the cluster; left out for a single process. */
  readonly queue?: Queue
  /**
   * Membership in the cluster that works on the same jobs; null or left out for a single process.
   */
  readonly cluster?: WorkerMembership | null
  /** Maximum number of concurrent sessions over all operators. */
  readonly concurrency: number
  /** Delay of a greylisted item in ms; null for the delay that the server states. */
  readonly greylistDelayMs: number | null
  /** False: items that should be retried later keep their current result. */
  readonly wait: boolean
  /** Ledger for the verifications of accounts; null without accounts. */
  readonly ledger: UsageLedger | null
  /** Applies the feedback of accounts to results; null or omitted to ignore it. */
  readonly feedback?: FeedbackKnowledge | null
  /** Base of the URLs in events, without a trailing slash. */
  readonly baseUrl: string
  /** Decides about actions for accounts without a policy; if left out, the balanced one. */
  readonly actionPolicy?: ActionPolicy
  /**
   * False to end work on jobs whose results cannot be written; if left out, writes are retried
   * until they succeed.
   */
  readonly retryStorageErrors?: boolean
  readonly timings?: WorkerTimings
  /** Lets requests go before jobs; null or left out if the process serves none. */
  readonly priority?: Priority | null
  /** Called with the job after each commit. */
  readonly onProgress?: (job: Job) => void
  /** Called once with each job that is finished without further retries. */
  readonly onFinishing?: (jobId: string) => void
  /** Called if work on a job ended early: it was cancelled or deleted, or cannot be processed. */
  readonly onFailure?: (jobId: string, error: unknown) => void
}

/** The part of the cluster membership that a worker needs. */
export type WorkerMembership = Pick<Membership, 'id' | 'onLost' | 'onSilent'>

/** The rows of a job that wait in the memory of this process. */
export type WaitingInMemory = {
  /** The number of those that can be probed, by operator. */
  readonly counts: ReadonlyMap<string, number>
  /** The rows whose lookup failed and will be repeated; null if there are none. */
  readonly failedLookups: FailedLookups | null
}

/** Processes any number of jobs until it is stopped. */
export interface JobWorker {
  /** Starts a queued job; an active job stays as it is. */
  take(jobId: string): void
  /** Ends work on a job that was cancelled or deleted. */
  drop(jobId: string): void
  /** Gives the waiting items of jobs that are to finish their results now, not at the next poll. */
  finish(): void
  /** IDs of the jobs that are active or being started. */
  readonly jobIds: ReadonlySet<string>
  /** Resolves with the job after its next commit, or with null when `signal` aborts. */
  changed(jobId: string, signal: AbortSignal): Promise<Job | null>
  /** Returns the number of active jobs, of operators that wait for a connection, and of connections. */
  status(): { readonly jobs: number; readonly waiting: number; readonly running: number }
  /** Returns the rows of a job that wait in the memory of this process. */
  waitingInMemory(jobId: string): WaitingInMemory
  /**
   * Lets sessions in flight finish, writes their results, and resolves when nothing runs. May be
   * called twice.
   */
  stop(): Promise<void>
}
