import { type Database, isStorageError } from '../../db/database.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Clock } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { retry } from '../../platform/retry.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { type Job, type JobOptions, parseJobOptions } from '../job-store.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from './worker-timings.ts'

/** A list that the worker has. */
export type ActiveJob = {
  readonly id: string
  readonly engine: Engine
  readonly options: JobOptions
  /** False: what should be asked again later ends as it is. */
  readonly wait: boolean
  /** Aborts when nothing more is done for it: it is finished, cancelled or deleted. */
  readonly over: AbortSignal
  /** Operators that items were filed under since it was taken up. */
  readonly operators: Set<string>
  /** How often something inside ev failed over an item, by its position. */
  readonly faults: Map<number, number>
  /** How often it could not be routed to its end, other than for the disk. */
  routeFaults: number
}

export type ActiveJobsDeps = {
  readonly clock: Clock
  readonly engineFor: (job: Job) => Engine
  readonly wait: (job: Job) => boolean
  /** Looks up those of these jobs that are worked on; null: only what is added here is. */
  readonly find: ((ids: readonly string[]) => Promise<readonly Job[]>) | null
  readonly timings?: Pick<WorkerTimings, 'absentMs'>
}

const ABSENT_MAX = 20_000

/** The lists of a worker. */
export class ActiveJobs {
  readonly #deps: ActiveJobsDeps
  readonly #lists = new Map<string, { list: ActiveJob; end: AbortController }>()
  readonly #absent: TtlMap<object>

  constructor(deps: ActiveJobsDeps) {
    this.#deps = deps
    this.#absent = new TtlMap({ sizeMax: ABSENT_MAX, clock: deps.clock })
  }

  get size(): number {
    return this.#lists.size
  }

  get ids(): readonly string[] {
    return [...this.#lists.keys()]
  }

  get(jobId: string): ActiveJob | undefined {
    return this.#lists.get(jobId)?.list
  }

  /** Those of these that are worked on, in their order: where others work too, one that is met first is looked up. */
  async load(ids: readonly string[]): Promise<ActiveJob[]> {
    const { find, timings = DEFAULT_WORKER_TIMINGS } = this.#deps
    const unknown = ids.filter(id => !this.#lists.has(id) && this.#absent.get(id) === undefined)
    if (find !== null && unknown.length > 0) {
      for (const job of await find(unknown)) this.add(job)
      for (const id of unknown) if (!this.#lists.has(id)) this.#absent.set(id, {}, timings.absentMs)
    }
    return ids.flatMap(id => this.get(id) ?? [])
  }

  /** One that is there already stays as it is. */
  add(job: Job): ActiveJob {
    const known = this.get(job.id)
    if (known !== undefined) return known
    this.#absent.delete(job.id)
    const { engineFor, wait } = this.#deps
    const end = new AbortController()
    const kept = { operators: new Set<string>(), faults: new Map<number, number>() }
    const its = {
      engine: engineFor(job),
      options: parseJobOptions(job),
      wait: wait(job),
      over: end.signal,
    }
    const list = { id: job.id, ...its, routeFaults: 0, ...kept }
    this.#lists.set(job.id, { list, end })
    return list
  }

  drop(jobId: string): void {
    this.#lists.get(jobId)?.end.abort()
    this.#lists.delete(jobId)
  }
}

/** Who waits for the next change of something, by its key. */
export class JobWaiters<T> {
  readonly #waiting = new Map<string, Set<(value: T | null) => void>>()

  /** Resolves with what `tell` is told next, or with null when `signal` aborts or nothing more is told. */
  next(key: string, signal: AbortSignal): Promise<T | null> {
    if (signal.aborted) return Promise.resolve(null)
    return new Promise(resolve => {
      const waiting = this.#waiting.get(key) ?? new Set()
      this.#waiting.set(key, waiting)
      const over = (value: T | null) => {
        signal.removeEventListener('abort', onAbort)
        waiting.delete(over)
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key)
        resolve(value)
      }
      const onAbort = () => over(null)
      waiting.add(over)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** What somebody waits for. */
  get keys(): readonly string[] {
    return [...this.#waiting.keys()]
  }

  notify(key: string, value: T | null): void {
    for (const over of [...(this.#waiting.get(key) ?? [])]) over(value)
  }

  /** Nothing more is told. */
  end(): void {
    for (const key of [...this.#waiting.keys()]) this.notify(key, null)
  }
}

type JobStarterDeps = {
  readonly database: Database
  readonly log: Log
  /** False: what cannot be stored now is not tried again. */
  readonly keepsTrying: boolean
  /** Takes a job up; `isOver` tells when that is not wanted any more. */
  readonly begin: (jobId: string, isDone: () => boolean) => Promise<void>
  readonly onFailure: (jobId: string, error: unknown) => void
  readonly stopping: AbortSignal
  /** Wait after a job could not be taken up because of the disk. */
  readonly retryMs: number
}

/** Jobs that are being taken up, each once at a time. */
export class JobStarter {
  readonly #deps: JobStarterDeps
  readonly #runs = new Map<string, { run: Promise<void>; dropped: boolean }>()

  constructor(deps: JobStarterDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#runs.size
  }

  take(jobId: string): void {
    const { stopping, begin, onFailure } = this.#deps
    if (stopping.aborted || this.#runs.has(jobId)) return
    const taking = { run: Promise.resolve(), dropped: false }
    this.#runs.set(jobId, taking)
    const isDone = () => taking.dropped || stopping.aborted
    taking.run = begin(jobId, isDone)
      .catch(error => onFailure(jobId, error))
      .finally(() => this.#runs.delete(jobId))
  }

  drop(jobId: string): void {
    const taking = this.#runs.get(jobId)
    if (taking !== undefined) taking.dropped = true
  }

  /** Runs one step of it, again and again while that cannot be stored. */
  retryWhileBusy<T>(run: () => Promise<T>, isDone: () => boolean): Promise<T> {
    const { keepsTrying, database, log, stopping, retryMs } = this.#deps
    return retry(run, {
      ...{ clock: database.clock, signal: stopping, delayMs: retryMs },
      isRetryable: error => keepsTrying && !isDone() && isStorageError(error),
      onRetry: error =>
        log.error('a job cannot be taken up now; that is tried again', {
          error: errorMessage(error),
        }),
    })
  }

  /** Resolves when none is being taken up. */
  async idle(): Promise<void> {
    await Promise.all([...this.#runs.values()].map(({ run }) => run))
  }
}
