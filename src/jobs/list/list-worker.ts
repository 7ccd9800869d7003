import { isStorageError } from '../../db/database.ts'
import type { Engine } from '../../engine/engine.ts'
import type { CachedAnswer, ResultCache } from '../../engine/result-cache.ts'
import { WINDOW_MAX } from '../../engine/scheduler/run.ts'
import { Scheduler } from '../../engine/scheduler/scheduler.ts'
import { toRowResult } from '../../engine/verdict/judge.ts'
import { onAbort } from '../../platform/abort.ts'
import { sleep } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { retry } from '../../platform/retry.ts'
import { getCachedAnswers } from '../cached-answers.ts'
import { queuedItems } from '../item-store.ts'
import { listJobsToFinish, startJob } from '../job-state.ts'
import { findJob, type Job } from '../job-store.ts'
import { ResultWriter } from '../results/result-writer.ts'
import { type ActiveJob, ActiveJobs, JobStarter, JobWaiters } from '../worker/active-jobs.ts'
import { JobReporter } from '../worker/job-reporter.ts'
import type { JobWorker, WorkerDeps } from '../worker/worker-deps.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from '../worker/worker-timings.ts'
import { type ListItem, ListRows } from './list-rows.ts'

type ListWorkerDeps = Omit<WorkerDeps, 'queue' | 'cluster'>

/** Number of internal failures after which a list is marked as failed. */
const FAULTS_MAX = 3
/** Rows of a simulated list per statement. */
const SIMULATED_PER_PAGE = 500
/** Rows of a simulated list per turn of the event loop, in a process that serves requests: 3 ms. */
const SIMULATED_PER_TURN = 25
/** Rows in memory of a process that serves requests, which has other work for its memory. */
const SERVICE_WINDOW_MAX = 20_000

/**
 * Processes the lists of a database that belongs to one process: the rows of each go from the
 * database to the scheduler of the process and back (`ListRows`).
 */
export class ListWorker implements JobWorker {
  readonly #deps: ListWorkerDeps
  readonly #timings: WorkerTimings
  readonly #lists: ActiveJobs
  readonly #starter: JobStarter
  readonly #waiters = new JobWaiters<Job>()
  readonly #reporter: JobReporter
  readonly #recorder: ResultWriter
  readonly #finisher: Loop
  readonly #stopping = new AbortController()
  readonly #abort = new AbortController()
  /** By ID, the lists whose rows are at the scheduler. */
  readonly #rows = new Map<string, ListRows>()
  /** By ID, the latest run of each list. */
  readonly #runs = new Map<string, Promise<void>>()
  /** Lists that are being finished without further retries. */
  readonly #announced = new WeakSet<ActiveJob>()
  /** Null until the first list that probes mail servers. */
  #scheduler: Scheduler | null = null
  #stopped: Promise<void> | null = null
  /** Caches answers, which are written together with their results. */
  readonly cache: ResultCache

  constructor(deps: ListWorkerDeps) {
    const { database, log, timings = DEFAULT_WORKER_TIMINGS, retryStorageErrors = true } = deps
    const stopping = this.#stopping.signal
    this.#deps = deps
    this.#timings = timings
    this.#lists = new ActiveJobs({ ...deps, timings, clock: database.clock, find: null })
    this.#reporter = new JobReporter({
      ...deps,
      lists: this.#lists,
      drop: jobId => this.drop(jobId),
    })
    this.#recorder = new ResultWriter({
      ...deps,
      timings,
      retryStorageErrors,
      onProgress: job => this.#onProgress(job),
      onWritten: () => this.#scheduler?.refill(),
      onLost: jobId => void this.#reporter.lost(jobId),
      onFailure: (jobId, error) => this.#reporter.failed(jobId, error),
    })
    this.#starter = new JobStarter({
      database,
      log,
      retryStorageErrors,
      stopping,
      retryMs: timings.retryMs,
      start: (jobId, isDone) => this.#start(jobId, isDone),
      onFailure: (jobId, error) => void this.#recorder.fail(jobId, error),
    })
    this.#finisher = startLoop({
      name: 'finishing lists',
      clock: database.clock,
      log,
      signal: stopping,
      everyMs: timings.finishPollMs,
      run: () => this.#finishRequested(),
    })
    this.cache = {
      get: keys => getCachedAnswers(database, keys),
      // Committed soon with its batch; the caller does not wait for it.
      set: async (entries: ReadonlyMap<string, CachedAnswer>) =>
        void this.#recorder.cacheResult(entries),
    }
  }

  take(jobId: string): void {
    if (this.#lists.get(jobId) === undefined) this.#starter.start(jobId)
  }

  drop(jobId: string): void {
    this.#starter.drop(jobId)
    this.#lists.drop(jobId)
    void findJob(this.#deps.database, jobId).then(
      job => this.#waiters.notify(jobId, job),
      () => this.#waiters.notify(jobId, null),
    )
  }

  finish(): void {
    this.#finisher.wake()
  }

  /** Resolves with the next change of a job; at once if it is finished or deleted. */
  async changed(jobId: string, signal: AbortSignal): Promise<Job | null> {
    if (this.#stopping.signal.aborted) return null
    const next = this.#waiters.next(jobId, signal)
    const job = await findJob(this.#deps.database, jobId)
    return job === null || job.finished_at !== null ? job : next
  }

  status() {
    const { waiting = 0, running = 0 } = this.#scheduler?.status ?? {}
    return { jobs: this.#lists.size + this.#starter.size, waiting, running }
  }

  waitingInMemory(jobId: string): ReadonlyMap<string, number> {
    const isCounted = ({ item }: { readonly item: unknown }) => {
      const one = item as ListItem
      return one.jobId === jobId && !one.isStored
    }
    const counts = this.#scheduler?.countPending(isCounted) ?? new Map<string, number>()
    for (const [operator, count] of this.#rows.get(jobId)?.countRefused() ?? []) {
      counts.set(operator, (counts.get(operator) ?? 0) + count)
    }
    return counts
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    this.#waiters.end()
    const idle = new AbortController()
    const ended = this.#starter
      .idle()
      .then(() => Promise.all(this.#runs.values()))
      .finally(() => idle.abort())
    await sleep(this.#deps.database.clock, this.#timings.drainMs, idle.signal)
    this.#abort.abort()
    await ended
    await this.#finisher.stop()
    await this.#recorder.stop()
  }

  async #start(jobId: string, isDone: () => boolean): Promise<void> {
    const { database, egresses } = this.#deps
    const before = await this.#starter.retryWhileBusy(() => findJob(database, jobId), isDone)
    if (before === null) return
    // Rows of a list that was cancelled and resumed may still be in flight.
    await this.#runs.get(jobId)
    if (isDone()) return
    const job = await this.#starter.retryWhileBusy(() => startJob(database, jobId), isDone)
    if (isDone() || job.finished_at !== null) return
    const list = this.#lists.add(job)
    if (egresses.length === 0) return
    const run = this.#retryFaults(list)
      .catch(error => this.#recorder.fail(jobId, error))
      .finally(() => this.#runs.delete(jobId))
    this.#runs.set(jobId, run)
  }

  /** Processes a list, again after an internal failure if it cannot be started by its user. */
  #retryFaults(list: ActiveJob): Promise<void> {
    const { database, log, retryStorageErrors = true } = this.#deps
    return retry(() => this.#process(list), {
      clock: database.clock,
      signal: this.#stopping.signal,
      delayMs: this.#timings.retryMs,
      attemptsMax: FAULTS_MAX,
      isRetryable: error => retryStorageErrors && !list.ended.aborted && !isStorageError(error),
      onRetry: error => log.error('list failed; retrying', { error: errorMessage(error) }),
    })
  }

  async #process(list: ActiveJob): Promise<void> {
    if (list.engine.isSandbox) return this.#simulate(list)
    const { database, priority = null } = this.#deps
    const { clock } = database
    const draining = new AbortController()
    const ending = new AbortController()
    let cancelTimer = () => {}
    const subscriptions = [
      onAbort(this.#stopping.signal, () => draining.abort()),
      onAbort(this.#abort.signal, () => ending.abort()),
      onAbort(list.ended, () => {
        draining.abort()
        cancelTimer = clock.after(this.#timings.drainMs, () => ending.abort())
      }),
    ]
    const rows = new ListRows({
      database,
      recorder: this.#recorder,
      list,
      priority,
      retryRead: read => this.#starter.retryWhileBusy(read, () => draining.signal.aborted),
      timings: this.#timings,
      stopping: draining.signal,
    })
    this.#rows.set(list.id, rows)
    try {
      await rows.load()
      await this.#schedulerFor(list.engine).run(rows, rows, {
        canRefuse: true,
        route: list.options,
        signal: ending.signal,
        drain: draining.signal,
        finish: list.finishing,
      })
    } finally {
      this.#rows.delete(list.id)
      cancelTimer()
      for (const unsubscribe of subscriptions) unsubscribe()
    }
  }

  #schedulerFor(engine: Engine): Scheduler {
    const { database, concurrency, greylistDelayMs, wait, priority = null } = this.#deps
    this.#scheduler ??= new Scheduler(engine, {
      clock: database.clock,
      concurrency,
      greylistDelayMs,
      windowMax: priority === null ? WINDOW_MAX : SERVICE_WINDOW_MAX,
      wait,
      urgent: false,
      isFull: () => this.#recorder.isFull,
      priority,
    })
    return this.#scheduler
  }

  /** Gives the rows of a simulated list their results; none is probed. */
  async #simulate(list: ActiveJob): Promise<void> {
    const { database, priority = null } = this.#deps
    const ends = [this.#stopping.signal, list.ended]
    const size = priority === null ? SIMULATED_PER_PAGE : SIMULATED_PER_TURN
    const isDone = () => ends.some(({ aborted }) => aborted)
    for (let after = 0; !isDone(); ) {
      await this.#recorder.settled()
      await priority?.yieldToRequests('route')
      const read = () => queuedItems(database, { jobId: list.id, after, max: size })
      const page = await this.#starter.retryWhileBusy(read, isDone)
      const prepared = await list.engine.route(page.map(({ text }) => text))
      const results = page.flatMap(({ position, copies }, index) => {
        const one = prepared[index]
        return one !== undefined && 'result' in one
          ? [{ position, copies, result: toRowResult(one.result) }]
          : []
      })
      if (results.length > 0) void this.#recorder.add(list.id, { results })
      if (page.length < size) return
      after = page.at(-1)?.position ?? after
    }
  }

  async #finishRequested(): Promise<void> {
    for (const id of await listJobsToFinish(this.#deps.database)) {
      const list = this.#lists.get(id)
      if (list === undefined || this.#announced.has(list)) continue
      this.#announced.add(list)
      this.#deps.onFinishing?.(id)
      this.#lists.finish(id)
    }
  }

  #onProgress(job: Job) {
    if (job.finished_at !== null) this.#lists.drop(job.id)
    this.#waiters.notify(job.id, job)
    this.#reporter.progressed(job)
  }
}
