import { isStorageError } from '../../db/database.ts'
import type { CachedAnswer } from '../../engine/result-cache.ts'
import { Batcher } from '../../platform/batcher.ts'
import { yieldToEventLoop } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import type { Priority } from '../../platform/priority.ts'
import { retry } from '../../platform/retry.ts'
import type { Job } from '../job-store.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from '../worker/worker-timings.ts'
import {
  type Content,
  commitBatch,
  type ItemUpdate,
  type WriteDeps,
  type Written,
  writeFailure,
} from './commit-batch.ts'

export type { ItemUpdate as Change } from './commit-batch.ts'

/** Committed together: when so many changes are there, or after `groupMs`. A crash asks these again. */
const GROUP_MIN = 50
/** More are never committed together: nothing else runs while they are written, some 20 ms. */
const GROUP_MAX = 200
/** While requests come, short stops count for more than few commits: some 3 ms and a commit. */
const GROUP_MAX_BESIDE_REQUESTS = 25

export type ResultWriterDeps = WriteDeps & {
  readonly log: Log
  /** False: a commit that fails is not tried again; whoever works on its jobs ends. */
  readonly keepsTrying: boolean
  readonly timings?: Pick<WorkerTimings, 'groupMs' | 'retryMs'>
  /** Requests that go first; null, or left out: there are none. */
  readonly priority?: Pick<Priority, 'hasRequests'> | null
  /** A job as it stands after a commit. */
  readonly onProgress: (job: Job) => void
  /** A job takes no more changes: it was cancelled or deleted, or is finished. */
  readonly onLost: (jobId: string) => void
  /** A commit failed for good: what it held may or may not be durable, so the job has to be taken up anew. */
  readonly onFailure: (jobId: string, error: unknown) => void
}

/** Writes what happens to items of all jobs, in groups: a durable commit costs as much for fifty rows as for one. */
export class ResultWriter {
  readonly #deps: ResultWriterDeps
  readonly #retryMs: number
  readonly #batcher: Batcher<Recordable>
  readonly #stopping = new AbortController()
  #last: Promise<void> = Promise.resolve()
  #isFailing = false

  constructor(deps: ResultWriterDeps) {
    this.#deps = deps
    const { retryMs, groupMs } = deps.timings ?? DEFAULT_WORKER_TIMINGS
    this.#retryMs = retryMs
    this.#batcher = new Batcher({
      ...{ clock: deps.database.clock, waitMs: groupMs },
      sizeMin: () => Math.min(GROUP_MIN, this.#groupMax),
      sizeMax: () => this.#groupMax,
      sizeOf: itemsOf,
      run: group => this.#writeGroup(group),
    })
  }

  /** Takes a change of a job's items; the promise resolves when it is durable. */
  add(jobId: string, change: ItemUpdate): Promise<void> {
    return this.#add({ jobId, change })
  }

  /** Takes answers to be remembered beyond their job. */
  cacheResult(answers: ReadonlyMap<string, CachedAnswer>): Promise<void> {
    return this.#add({ answers })
  }

  /** Resolves when all that was taken so far is durable. */
  async flushed(): Promise<void> {
    if (this.#batcher.pending > 0) await this.#last
  }

  /** Waits while more is not durable yet than a crash may make us ask again, and while nothing can be written. */
  async settled(): Promise<void> {
    if (this.#batcher.sizePending > GROUP_MIN || this.#isFailing) await this.flushed()
  }

  /** Gives a job up. A service ends it as failed, unless it is trouble of the disk, which passes; a list can be taken up anew. */
  async fail(jobId: string, error: unknown): Promise<void> {
    const { log, keepsTrying, onProgress, onFailure } = this.#deps
    if (keepsTrying && !isStorageError(error)) {
      log.error('a job failed inside ev', { job: jobId, error: errorMessage(error) })
      try {
        const job = await this.#tryOn(() => writeFailure(this.#deps, jobId))
        if (job !== null) onProgress(job)
      } catch (error) {
        log.error('a failed job cannot be ended', { job: jobId, error: errorMessage(error) })
      }
    }
    onFailure(jobId, error)
  }

  /** What cannot be written now is not tried again; resolves when nothing is being written. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#batcher.close()
  }

  get #groupMax(): number {
    return this.#deps.priority?.hasRequests ? GROUP_MAX_BESIDE_REQUESTS : GROUP_MAX
  }

  #add(recordable: Recordable): Promise<void> {
    this.#last = this.#batcher.add(recordable)
    return this.#last
  }

  async #writeGroup(group: readonly Recordable[]): Promise<void> {
    const content = contentOf(group)
    try {
      await this.#write(content)
    } catch (error) {
      const mayBeOfOne = content.changes.size > 1 && !isStorageError(error)
      if (mayBeOfOne) return this.#writeSplit(content)
      await this.#give(content, error)
      throw error
    }
  }

  /** What one job brought is refused: that is nothing to the others. */
  async #writeSplit(group: Content): Promise<void> {
    for (const content of splitByJob(group)) {
      await this.#write(content).catch(error => this.#give(content, error))
    }
  }

  async #write(content: Content): Promise<void> {
    const written = await this.#tryOn(() => commitBatch(this.#deps, content))
    // SQLite answers without waiting, so a list that asks nobody would run in one breath.
    await yieldToEventLoop()
    this.#notify(written)
  }

  /** While nothing can be written, it is tried again and again, however long. */
  async #tryOn<T>(run: () => Promise<T>): Promise<T> {
    const { database, log, keepsTrying } = this.#deps
    const done = await retry(run, {
      ...{ clock: database.clock, delayMs: this.#retryMs, signal: this.#stopping.signal },
      isRetryable: error => keepsTrying && isStorageError(error),
      onRetry: error => {
        this.#isFailing = true
        log.error('results cannot be written now; that is tried again', {
          error: errorMessage(error),
        })
      },
    })
    this.#isFailing = false
    return done
  }

  async #give({ changes }: Content, error: unknown): Promise<void> {
    for (const jobId of changes.keys()) await this.fail(jobId, error)
  }

  #notify({ jobs, lost }: Written) {
    for (const jobId of lost) this.#deps.onLost(jobId)
    for (const job of jobs) this.#deps.onProgress(job)
  }
}

/** What is committed in groups: a change of a job's items, or answers to be remembered. */
type Recordable =
  | { readonly jobId: string; readonly change: ItemUpdate }
  | { readonly answers: ReadonlyMap<string, CachedAnswer> }

/** How many items it changes. */
function itemsOf(recordable: Recordable): number {
  if ('answers' in recordable) return 0
  const { results = [], filed = [], postponed = [] } = recordable.change
  return results.length + filed.length + postponed.length
}

function contentOf(group: readonly Recordable[]): Content {
  const changes = new Map<string, ItemUpdate[]>()
  const answers = new Map<string, CachedAnswer>()
  for (const recordable of group) {
    if ('answers' in recordable) {
      for (const [key, cached] of recordable.answers) answers.set(key, cached)
      continue
    }
    const { jobId, change } = recordable
    const own = changes.get(jobId)
    if (own === undefined) changes.set(jobId, [change])
    else own.push(change)
  }
  return { changes, answers }
}

/** What a group holds of each job by itself; the answers go with the first. */
const splitByJob = ({ changes, answers }: Content): Content[] =>
  [...changes].map(([jobId, own], index) => ({
    changes: new Map([[jobId, own]]),
    answers: index === 0 ? answers : new Map(),
  }))
