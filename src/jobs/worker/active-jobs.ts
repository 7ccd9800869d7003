import { type Database, isStorageError } from '../../db/database.ts'
import type { Engine } from '../../engine/engine.ts'
import type { TaskOptions } from '../../engine/probe/prepare.ts'
import type { RouteOptions } from '../../engine/verify-options.ts'
import { onAbort } from '../../platform/abort.ts'
import { errorMessage } from '../../platform/error.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { retry } from '../../platform/retry.ts'
import { isCancelled } from '../job-state.ts'
import { type Job, type JobOptions, parseJobOptions } from '../job-store.ts'
import { JOB_LOG } from '../telemetry.ts'

/** A job that the worker processes. */
export type ActiveJob = {
  readonly id: string
  readonly engine: Engine
  readonly options: JobOptions &
    Pick<TaskOptions, 'cacheScope'> &
    Pick<RouteOptions, 'ownAnswersSince'>
  /** Aborts when the job is to finish without further retries. */
  readonly finishing: AbortSignal
  /** Aborts when work on the job ends: it is finished, cancelled or deleted. */
  readonly ended: AbortSignal
}

type ActiveJobsDeps = {
  readonly engineFor: (job: Job) => Engine
}

type ActiveEntry = {
  readonly activeJob: ActiveJob
  readonly end: AbortController
  readonly finish: AbortController
}

/** The jobs that a worker processes. */
export class ActiveJobs {
  readonly #deps: ActiveJobsDeps
  readonly #entries = new Map<string, ActiveEntry>()

  constructor(deps: ActiveJobsDeps) {
    this.#deps = deps
  }

  get ids(): Iterable<string> {
    return this.#entries.keys()
  }

  get(jobId: string): ActiveJob | undefined {
    return this.#entries.get(jobId)?.activeJob
  }

  /** Adds a job; one that is already active stays as it is. */
  add(job: Job): ActiveJob {
    const known = this.get(job.id)
    if (known !== undefined) return known
    const { engineFor } = this.#deps
    const end = new AbortController()
    const finish = new AbortController()
    if (job.finish_requested_at !== null) finish.abort()
    const activeJob: ActiveJob = {
      id: job.id,
      engine: engineFor(job),
      options: {
        ...parseJobOptions(job),
        cacheScope: job.account_id,
        // In a service, other requests and lists cache answers at the same time.
        ...(job.account_id === null ? { ownAnswersSince: job.created_at } : {}),
      },
      ended: end.signal,
      finishing: finish.signal,
    }
    this.#entries.set(job.id, { activeJob, end, finish })
    return activeJob
  }

  /** Ends the waits of a job for retries. */
  finish(jobId: string): void {
    this.#entries.get(jobId)?.finish.abort()
  }

  drop(jobId: string): void {
    this.#entries.get(jobId)?.end.abort()
    this.#entries.delete(jobId)
  }
}

/** Waiters for the next change of a value, by key. */
export class JobWaiters<T> {
  readonly #waiting = new Map<string, Set<(value: T | null) => void>>()

  /**
   * Resolves with the next value passed to `notify`, or with null when `signal` aborts or the
   * waiters are ended.
   */
  next(key: string, signal: AbortSignal): Promise<T | null> {
    if (signal.aborted) return Promise.resolve(null)
    return new Promise(resolve => {
      const waiting = this.#waiting.get(key) ?? new Set()
      this.#waiting.set(key, waiting)
      const settle = (value: T | null) => {
        unsubscribe()
        waiting.delete(settle)
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key)
        resolve(value)
      }
      waiting.add(settle)
      const unsubscribe = onAbort(signal, () => settle(null))
    })
  }

  /** Keys that have waiters. */
  get keys(): readonly string[] {
    return [...this.#waiting.keys()]
  }

  notify(key: string, value: T | null): void {
    for (const settle of [...(this.#waiting.get(key) ?? [])]) settle(value)
  }

  /** Resolves all waiters with null. */
  end(): void {
    for (const key of [...this.#waiting.keys()]) this.notify(key, null)
  }
}

type JobStarterDeps = {
  readonly database: Database
  readonly log: Log
  /** False to not retry storage errors. */
  readonly retryStorageErrors: boolean
  /** Starts a job; `isDone` returns true once that is no longer wanted. */
  readonly start: (jobId: string, isDone: () => boolean) => Promise<void>
  readonly onFailure: (jobId: string, error: unknown) => void
  readonly stopping: AbortSignal
  /** Delay before a retry after a storage error. */
  readonly retryMs: number
}

/** Number of internal failures after which a job is not started. */
const START_FAULTS_MAX = 3

/** Starts jobs, each at most once at a time. */
export class JobStarter {
  readonly #deps: JobStarterDeps
  readonly #runs = new Map<string, { run: Promise<void>; dropped: boolean }>()

  constructor(deps: JobStarterDeps) {
    this.#deps = deps
  }

  get ids(): Iterable<string> {
    return this.#runs.keys()
  }

  start(jobId: string): void {
    const { stopping, start, onFailure } = this.#deps
    if (stopping.aborted || this.#runs.has(jobId)) return
    const starting = { run: Promise.resolve(), dropped: false }
    this.#runs.set(jobId, starting)
    const isDone = () => starting.dropped || stopping.aborted
    starting.run = this.#retryFaults(() => start(jobId, isDone), isDone)
      .catch(error => onFailure(jobId, error))
      .finally(() => this.#runs.delete(jobId))
  }

  drop(jobId: string): void {
    const starting = this.#runs.get(jobId)
    if (starting !== undefined) starting.dropped = true
  }

  /** Runs a start and repeats it after an internal failure, until the maximum is reached. */
  #retryFaults(run: () => Promise<void>, isDone: () => boolean): Promise<void> {
    const { database, log, stopping, retryMs } = this.#deps
    return retry(run, {
      clock: database.clock,
      signal: stopping,
      delayMs: retryMs,
      attemptsMax: START_FAULTS_MAX,
      isRetryable: error => !isDone() && !isStorageError(error) && !isCancelled(error),
      onRetry: error =>
        writeLog(log, JOB_LOG.startRetried, {
          error: errorMessage(error),
        }),
    })
  }

  /** Runs one step of a start and retries it on storage errors. */
  retryWhileBusy<T>(run: () => Promise<T>, isDone: () => boolean): Promise<T> {
    const { retryStorageErrors, database, log, stopping, retryMs } = this.#deps
    return retry(run, {
      clock: database.clock,
      signal: stopping,
      delayMs: retryMs,
      isRetryable: error => retryStorageErrors && !isDone() && isStorageError(error),
      onRetry: error =>
        writeLog(log, JOB_LOG.startDelayed, {
          error: errorMessage(error),
        }),
    })
  }

  /** Resolves when no job is being started. */
  async idle(): Promise<void> {
    await Promise.all([...this.#runs.values()].map(({ run }) => run))
  }
}
