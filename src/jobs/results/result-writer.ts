import { isStorageError } from '../../db/database.ts'
import type { CachedAnswer } from '../../engine/result-cache.ts'
import { Batcher } from '../../platform/batcher.ts'
import { yieldToEventLoop } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import type { Priority } from '../../platform/priority.ts'
import { retry } from '../../platform/retry.ts'
import { isCancelled } from '../job-state.ts'
import type { Job } from '../job-store.ts'
import { JOB_LOG } from '../telemetry.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from '../worker/worker-timings.ts'
import {
  type Content,
  commitBatch,
  type ItemUpdate,
  type WriteDeps,
  type Written,
  writeFailure,
} from './commit-batch.ts'

/**
 * A batch is committed when it has this many changes, or after `batchMs`. After a crash its items
 * are probed again. With 500 rows a durable commit costs 2 µs per row, with 50 it costs 8 µs.
 */
const BATCH_MIN = 500
/** Maximum size of a batch: writing it blocks the event loop for about 10 ms. */
const BATCH_MAX = 1_000
/** The same for a process that serves requests, which also writes history and usage of each row. */
const SERVICE_BATCH = { min: 50, max: 200 }
/**
 * Maximum size while requests are served, when short blocking matters more than few commits: about 3
 * ms and a commit.
 */
const BATCH_MAX_WITH_REQUESTS = 25

type ResultWriterDeps = WriteDeps & {
  readonly log: Log
  /** False to not retry a failed commit; work on its jobs ends then. */
  readonly retryStorageErrors: boolean
  readonly timings?: Pick<WorkerTimings, 'batchMs' | 'retryMs'>
  /** Reduces batches while requests are served; null or left out if the process serves none. */
  readonly priority?: Pick<Priority, 'hasRequests'> | null
  /** Called with each job after a commit. */
  readonly onProgress: (job: Job) => void
  /** Called after each batch, when its changes no longer count as pending. */
  readonly onWritten?: () => void
  /** Called if a job accepts no more changes: it was cancelled or deleted, or is finished. */
  readonly onLost: (jobId: string) => void
  /**
   * Called if a commit failed permanently: its content may or may not be durable, so the job has to
   * be started again.
   */
  readonly onFailure: (jobId: string, error: unknown) => void
}

/**
 * Writes changes of items of all jobs in batches, because a durable commit costs as much for many
 * rows as for one.
 */
export class ResultWriter {
  readonly #deps: ResultWriterDeps
  readonly #retryMs: number
  readonly #batcher: Batcher<BatchEntry>
  readonly #stopping = new AbortController()
  #last: Promise<void> = Promise.resolve()
  #isFailing = false

  constructor(deps: ResultWriterDeps) {
    this.#deps = deps
    const { retryMs, batchMs } = deps.timings ?? DEFAULT_WORKER_TIMINGS
    this.#retryMs = retryMs
    this.#batcher = new Batcher({
      clock: deps.database.clock,
      waitMs: batchMs,
      sizeMin: () => Math.min(this.#isService ? SERVICE_BATCH.min : BATCH_MIN, this.#batchMax),
      sizeMax: () => this.#batchMax,
      sizeOf: countItems,
      run: batch => this.#writeBatch(batch).finally(() => void this.#reportWritten()),
    })
  }

  /** Adds a change of a job's items; the promise resolves when it is committed. */
  add(jobId: string, change: ItemUpdate): Promise<void> {
    return this.#add({ jobId, change })
  }

  /** Adds answers for the cache, which outlives their job. */
  cacheResult(answers: ReadonlyMap<string, CachedAnswer>): Promise<void> {
    return this.#add({ answers })
  }

  /** Number of items with changes that are not committed. */
  get pending(): number {
    return this.#batcher.sizePending
  }

  /** Whether more changes are pending than a crash may undo, or nothing can be written. */
  get isFull(): boolean {
    return this.pending > (this.#isService ? SERVICE_BATCH.min : BATCH_MAX) || this.#isFailing
  }

  /** Resolves when all changes added so far are committed. */
  async flushed(): Promise<void> {
    if (this.#batcher.pending > 0) await this.#last
  }

  /** Waits while it is full. */
  async settled(): Promise<void> {
    if (this.isFull) await this.flushed()
  }

  /**
   * Stops work on a job. A service marks it as failed, unless it was cancelled, or the error is a
   * temporary storage error; a list of the command line can be started again.
   */
  async fail(jobId: string, error: unknown): Promise<void> {
    const { log, retryStorageErrors, onProgress, onFailure } = this.#deps
    if (retryStorageErrors && !isStorageError(error) && !isCancelled(error)) {
      writeLog(log, JOB_LOG.failed, { job: jobId, error: errorMessage(error) })
      try {
        const job = await this.#retryWhileUnwritable(() => writeFailure(this.#deps, jobId))
        if (job !== null) onProgress(job)
      } catch (error) {
        writeLog(log, JOB_LOG.notMarkedFailed, { job: jobId, error: errorMessage(error) })
      }
    }
    onFailure(jobId, error)
  }

  /** Stops retries and resolves when no write is in progress. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#batcher.close()
  }

  get #isService(): boolean {
    return (this.#deps.priority ?? null) !== null
  }

  get #batchMax(): number {
    if (this.#deps.priority?.hasRequests) return BATCH_MAX_WITH_REQUESTS
    return this.#isService ? SERVICE_BATCH.max : BATCH_MAX
  }

  #add(entry: BatchEntry): Promise<void> {
    this.#last = this.#batcher.add(entry)
    return this.#last
  }

  async #writeBatch(batch: readonly BatchEntry[]): Promise<void> {
    const content = mergeEntries(batch)
    try {
      await this.#write(content)
    } catch (error) {
      const isSplittable = content.changes.size > 1 && !isStorageError(error)
      if (isSplittable) return this.#writeSplit(content)
      await this.#failJobs(content, error)
      throw error
    }
  }

  async #reportWritten(): Promise<void> {
    // The batch is pending until its write has returned.
    await yieldToEventLoop()
    this.#deps.onWritten?.()
  }

  /**
   * Writes each job separately, so that the rejected changes of one job do not affect the others.
   */
  async #writeSplit(batch: Content): Promise<void> {
    for (const content of splitByJob(batch)) {
      await this.#write(content).catch(error => this.#failJobs(content, error))
    }
  }

  async #write(content: Content): Promise<void> {
    const written = await this.#retryWhileUnwritable(() => commitBatch(this.#deps, content))
    // SQLite works synchronously, so a list that needs no probes would block the event loop.
    await yieldToEventLoop()
    this.#notify(written)
  }

  /** Runs a write and retries it without limit while nothing can be written. */
  async #retryWhileUnwritable<T>(run: () => Promise<T>): Promise<T> {
    const { database, log, retryStorageErrors } = this.#deps
    const done = await retry(run, {
      clock: database.clock,
      delayMs: this.#retryMs,
      signal: this.#stopping.signal,
      isRetryable: error => retryStorageErrors && isStorageError(error),
      onRetry: error => {
        this.#isFailing = true
        writeLog(log, JOB_LOG.resultsNotWritten, {
          error: errorMessage(error),
        })
      },
    })
    this.#isFailing = false
    return done
  }

  async #failJobs({ changes }: Content, error: unknown): Promise<void> {
    for (const jobId of changes.keys()) await this.fail(jobId, error)
  }

  #notify({ jobs, lost }: Written) {
    for (const jobId of lost) this.#deps.onLost(jobId)
    for (const job of jobs) this.#deps.onProgress(job)
  }
}

/** An entry of a batch: a change of a job's items, or answers for the cache. */
type BatchEntry =
  | { readonly jobId: string; readonly change: ItemUpdate }
  | { readonly answers: ReadonlyMap<string, CachedAnswer> }

/** Returns the number of items that an entry changes. */
function countItems(entry: BatchEntry): number {
  if ('answers' in entry) return 0
  const { results = [], routed = [], postponed = [] } = entry.change
  return results.length + routed.length + postponed.length
}

function mergeEntries(batch: readonly BatchEntry[]): Content {
  const changes = new Map<string, ItemUpdate[]>()
  const answers = new Map<string, CachedAnswer>()
  for (const entry of batch) {
    if ('answers' in entry) {
      for (const [key, cached] of entry.answers) answers.set(key, cached)
      continue
    }
    const { jobId, change } = entry
    const jobChanges = changes.get(jobId)
    if (jobChanges === undefined) changes.set(jobId, [change])
    else jobChanges.push(change)
  }
  return { changes, answers }
}

/** Splits the content of a batch by job; the answers go with the first. */
const splitByJob = ({ changes, answers }: Content): Content[] =>
  [...changes].map(([jobId, jobChanges], index) => ({
    changes: new Map([[jobId, jobChanges]]),
    answers: index === 0 ? answers : new Map(),
  }))
