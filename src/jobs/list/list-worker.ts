import type { CachedAnswer, ResultCache } from '../../engine/result-cache.ts'
import { Scheduler, WINDOW_MAX } from '../../engine/scheduler/scheduler.ts'
import { toRowResult } from '../../engine/verdict/judge.ts'
import { sleep } from '../../platform/clock.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { getCachedAnswers } from '../cached-answers.ts'
import { queuedItems } from '../item-store.ts'
import { listJobsToFinish, startJob } from '../job-state.ts'
import type { Job } from '../job-store.ts'
import { ResultWriter } from '../results/result-writer.ts'
import { type ActiveJob, ActiveJobs } from '../worker/active-jobs.ts'
import { JobReporter } from '../worker/job-reporter.ts'
import type { WorkerDeps } from '../worker/worker-deps.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from '../worker/worker-timings.ts'
import { ListRows } from './list-rows.ts'

type ListWorkerDeps = Pick<
  WorkerDeps,
  | 'database'
  | 'log'
  | 'random'
  | 'engineFor'
  | 'concurrency'
  | 'greylistDelayMs'
  | 'wait'
  | 'feedback'
  | 'timings'
  | 'onProgress'
  | 'onFinishing'
  | 'onFailure'
>

/** Rows of a simulated list per statement. */
const SIMULATED_PER_PAGE = 500

/**
 * Processes one list of the command line, in a process of its own: its rows go from the database to
 * the scheduler of the engine and back (`ListRows`).
 */
export class ListWorker {
  readonly #deps: ListWorkerDeps
  readonly #timings: WorkerTimings
  readonly #lists: ActiveJobs
  readonly #reporter: JobReporter
  readonly #recorder: ResultWriter
  readonly #finisher: Loop
  readonly #stopping = new AbortController()
  readonly #abort = new AbortController()
  #rows: ListRows | null = null
  #scheduler: Pick<Scheduler<{ readonly isStored: boolean }>, 'refill' | 'countPending'> | null =
    null
  #run: Promise<void> = Promise.resolve()
  #stopped: Promise<void> | null = null
  /** Whether the list is being finished without further retries. */
  #isFinishing = false
  /** Caches answers, which are written together with their results. */
  readonly cache: ResultCache

  constructor(deps: ListWorkerDeps) {
    const { database, log, timings = DEFAULT_WORKER_TIMINGS } = deps
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
      ledger: null,
      baseUrl: '',
      timings,
      // The list can be started again.
      retryStorageErrors: false,
      onProgress: job => this.#onProgress(job),
      onLost: jobId => void this.#reporter.lost(jobId),
      onFailure: (jobId, error) => this.#reporter.failed(jobId, error),
    })
    this.#finisher = startLoop({
      name: 'finishing lists',
      clock: database.clock,
      log,
      signal: this.#stopping.signal,
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

  /** Starts the list. May be called once. */
  take(jobId: string): void {
    this.#run = this.#process(jobId).catch(error => this.#recorder.fail(jobId, error))
  }

  /** Ends work on a list that was cancelled or deleted. */
  drop(jobId: string): void {
    this.#lists.drop(jobId)
  }

  /** Gives the waiting rows of a list that is to finish their results now, not at the next poll. */
  finish(): void {
    this.#finisher.wake()
  }

  /** Returns the number of rows that wait in memory, by operator. */
  waitingInMemory(): ReadonlyMap<string, number> {
    const counts = this.#scheduler?.countPending(({ item }) => !item.isStored) ?? new Map()
    for (const [operator, count] of this.#rows?.countRefused() ?? []) {
      counts.set(operator, (counts.get(operator) ?? 0) + count)
    }
    return counts
  }

  /**
   * Lets sessions in flight finish, writes their results, and resolves when nothing runs. May be
   * called twice.
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    const idle = new AbortController()
    const run = this.#run.finally(() => idle.abort())
    await sleep(this.#deps.database.clock, this.#timings.drainMs, idle.signal)
    this.#abort.abort()
    await run
    await this.#finisher.stop()
    await this.#recorder.stop()
  }

  async #process(jobId: string): Promise<void> {
    const { database } = this.#deps
    const job = await startJob(database, jobId)
    const stopping = this.#stopping.signal
    if (stopping.aborted || job.finished_at !== null) return
    const list = this.#lists.add(job)
    if (list.engine.isSandbox) return this.#simulate(list)
    const { concurrency, greylistDelayMs } = this.#deps
    const { clock } = database
    const draining = AbortSignal.any([stopping, list.ended])
    const rows = new ListRows({
      database,
      recorder: this.#recorder,
      list,
      timings: this.#timings,
      stopping: draining,
    })
    await rows.load()
    const scheduler = new Scheduler(list.engine, rows, {
      clock,
      concurrency,
      greylistDelayMs,
      windowMax: WINDOW_MAX,
      canRefuse: true,
      get wait() {
        return list.wait
      },
      urgent: false,
      route: list.options,
      signal: this.#abort.signal,
      drain: draining,
      finish: list.finishing,
    })
    this.#rows = rows
    this.#scheduler = scheduler
    await scheduler.run(rows)
  }

  /** Gives the rows of a simulated list their results; none is probed. */
  async #simulate(list: ActiveJob): Promise<void> {
    const { database } = this.#deps
    const ends = [this.#stopping.signal, list.ended]
    for (let after = 0; !ends.some(({ aborted }) => aborted); ) {
      await this.#recorder.settled()
      const page = await queuedItems(database, { jobId: list.id, after, max: SIMULATED_PER_PAGE })
      const prepared = await Promise.all(page.map(({ text }) => list.engine.routeOne(text)))
      const results = page.flatMap(({ position, copies }, index) => {
        const one = prepared[index]
        return one !== undefined && 'result' in one
          ? [{ position, copies, result: toRowResult(one.result) }]
          : []
      })
      if (results.length > 0) void this.#recorder.add(list.id, { results })
      if (page.length < SIMULATED_PER_PAGE) return
      after = page.at(-1)?.position ?? after
    }
  }

  async #finishRequested(): Promise<void> {
    for (const id of await listJobsToFinish(this.#deps.database)) {
      const list = this.#lists.get(id)
      if (list === undefined || this.#isFinishing) continue
      this.#isFinishing = true
      this.#deps.onFinishing?.(id)
      this.#lists.finish(id)
    }
  }

  #onProgress(job: Job) {
    this.#scheduler?.refill()
    this.#reporter.progressed(job)
  }
}
