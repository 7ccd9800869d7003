import { isStorageError } from '../../db/database.ts'
import type { Engine } from '../../engine/engine.ts'
import type { CachedAnswer, ResultCache } from '../../engine/result-cache.ts'
import type { Feed, Sink } from '../../engine/scheduler/feed.ts'
import { WINDOW_MAX } from '../../engine/scheduler/run.ts'
import { Scheduler } from '../../engine/scheduler/scheduler.ts'
import { toRowResult } from '../../engine/verdict/judge.ts'
import { onAbort } from '../../platform/abort.ts'
import { sleep } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { writeLog } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { retry } from '../../platform/retry.ts'
import type { Reschedule, Worker } from '../../queue/queue.ts'
import { getCachedAnswers } from '../cached-answers.ts'
import { findClaimable, releaseShare } from '../item-claims.ts'
import { queuedItems } from '../item-store.ts'
import { listJobsToFinish, startJob } from '../job-state.ts'
import { findJob, type Job, startSharedJob } from '../job-store.ts'
import { ResultWriter } from '../results/result-writer.ts'
import { JOB_LOG } from '../telemetry.ts'
import { type ActiveJob, ActiveJobs, JobStarter, JobWaiters } from '../worker/active-jobs.ts'
import { ChangePoller } from '../worker/change-poller.ts'
import { JobReporter } from '../worker/job-reporter.ts'
import type {
  JobWorker,
  WaitingInMemory,
  WorkerDeps,
  WorkerMembership,
} from '../worker/worker-deps.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from '../worker/worker-timings.ts'
import { type ListItem, ListRows } from './list-rows.ts'
import { ShareRows } from './share-rows.ts'

/** End the run of a list. */
type RunSignals = {
  readonly draining: AbortController
  readonly ending: AbortController
  /** Removes the listeners. */
  readonly end: () => void
}

/** Number of internal failures after which a list is marked as failed. */
const FAULTS_MAX = 3
/** Rows of a simulated list per statement. */
const SIMULATED_PER_PAGE = 500
/** Rows of a simulated list per turn of the event loop, in a process that serves requests: 3 ms. */
const SIMULATED_PER_TURN = 25
/**
 * Rows that a member of a cluster holds, over all lists, for each of its connections: two
 * connections of twenty recipients, which the scheduler keeps for each connection to an operator.
 * With fewer, a few operators would take them all and leave connections unused. Rows of a domain are
 * claimed together, so more of them would not save connections.
 */
const SHARE_PER_CONNECTION = 40
/** Rows that a member holds at most: those that wait here could be probed by another member. */
const SHARE_MAX = 8_000
/** The kind of task that wakes a member for a list. */
const WAKE_UP = 'list'
/** Lists that a wake-up starts at the same time. */
const WAKE_UPS_MAX = 10

/**
 * Processes lists: the rows of each go from the database to the scheduler of the process and back.
 * If the database belongs to this process, it reads them (`ListRows`). A member of a cluster claims
 * a share of them (`ShareRows`); all members work on all open lists. A poll finds the lists, and
 * what there is to claim of each; a task of the queue wakes one member at once for a new list.
 */
export class ListWorker implements JobWorker {
  readonly #deps: WorkerDeps
  readonly #cluster: WorkerMembership | null
  readonly #timings: WorkerTimings
  readonly #activeJobs: ActiveJobs
  readonly #starter: JobStarter
  readonly #waiters = new JobWaiters<Job>()
  readonly #reporter: JobReporter
  readonly #writer: ResultWriter
  readonly #finisher: Loop
  readonly #stopping = new AbortController()
  readonly #abort = new AbortController()
  /** By ID, the rows of the lists of a process that has the database alone. */
  readonly #rows = new Map<string, ListRows>()
  /** By ID, the shares of a member of a cluster. */
  readonly #shares = new Map<string, ShareRows>()
  /** Finds rows to claim; null without a cluster, or without egresses. */
  readonly #claimPoll: Loop | null
  readonly #wakeUps: Worker | null
  readonly #changePoller: ChangePoller | null
  /** ID of the member that this process was until it was expired; null if it was not. */
  #expiredId: string | null = null
  readonly #unsubscribe: () => void
  /** By ID, the latest run of each list. */
  readonly #runs = new Map<string, Promise<void>>()
  /** Lists that are being finished without further retries. */
  readonly #announced = new WeakSet<ActiveJob>()
  /** Null until the first list that probes mail servers. */
  #scheduler: Scheduler | null = null
  #stopped: Promise<void> | null = null
  /** Caches answers, which are written together with their results. */
  readonly cache: ResultCache

  constructor(deps: WorkerDeps) {
    const { database, log, timings = DEFAULT_WORKER_TIMINGS, retryStorageErrors = true } = deps
    const { cluster = null, queue, egresses } = deps
    const stopping = this.#stopping.signal
    this.#deps = deps
    this.#cluster = cluster
    this.#timings = timings
    this.#activeJobs = new ActiveJobs(deps)
    this.#reporter = new JobReporter({
      ...deps,
      activeJobs: this.#activeJobs,
      drop: jobId => this.drop(jobId),
    })
    this.#writer = new ResultWriter({
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
      onFailure: (jobId, error) => void this.#writer.fail(jobId, error),
    })
    this.#finisher = startLoop({
      failed: JOB_LOG.finishFailed,
      clock: database.clock,
      log,
      signal: stopping,
      everyMs: timings.finishPollMs,
      run: () => this.#finishRequested(),
    })
    this.#unsubscribe =
      cluster?.onLost(() => {
        this.#expiredId = cluster.id
      }) ?? (() => {})
    this.#changePoller =
      cluster === null
        ? null
        : new ChangePoller({ database, log, waiters: this.#waiters, stopping, timings })
    const isProbing = cluster !== null && egresses.length > 0
    this.#claimPoll = !isProbing
      ? null
      : startLoop({
          failed: JOB_LOG.claimPollFailed,
          clock: database.clock,
          log,
          signal: stopping,
          everyMs: timings.claimPollMs,
          run: () => this.#offerClaimable(),
        })
    this.#wakeUps =
      !isProbing || queue === undefined
        ? null
        : queue.work(WAKE_UP, key => this.#onWakeUp(key), { concurrency: WAKE_UPS_MAX })
    this.cache = {
      get: keys => getCachedAnswers(database, keys),
      // Committed soon with its batch; the caller does not wait for it.
      set: async (entries: ReadonlyMap<string, CachedAnswer>) =>
        void this.#writer.cacheResult(entries),
    }
  }

  take(jobId: string): void {
    if (this.#activeJobs.get(jobId) === undefined) this.#starter.start(jobId)
  }

  drop(jobId: string): void {
    this.#starter.drop(jobId)
    this.#activeJobs.drop(jobId)
    void findJob(this.#deps.database, jobId).then(
      job => this.#waiters.notify(jobId, job),
      () => this.#waiters.notify(jobId, null),
    )
  }

  finish(): void {
    this.#finisher.wake()
  }

  get jobIds(): ReadonlySet<string> {
    return new Set([...this.#activeJobs.ids, ...this.#starter.ids])
  }

  /** Resolves with the next change of a job; at once if it is finished or deleted. */
  async changed(jobId: string, signal: AbortSignal): Promise<Job | null> {
    if (this.#stopping.signal.aborted) return null
    const next = this.#waiters.next(jobId, signal)
    const job = await findJob(this.#deps.database, jobId)
    if (job === null || job.finished_at !== null) return job
    this.#changePoller?.follow(job)
    return next
  }

  status() {
    const { waiting = 0, running = 0 } = this.#scheduler?.status ?? {}
    return { jobs: this.jobIds.size, waiting, running }
  }

  waitingInMemory(jobId: string): WaitingInMemory {
    const isCounted = ({ item }: { readonly item: unknown }) => {
      const one = item as ListItem
      return one.jobId === jobId && !one.isStored
    }
    const counts = this.#scheduler?.countPending(isCounted) ?? new Map<string, number>()
    for (const [operator, count] of this.#rows.get(jobId)?.countRefused() ?? []) {
      counts.set(operator, (counts.get(operator) ?? 0) + count)
    }
    return { counts, failedLookups: this.#scheduler?.countFailedLookups(isCounted) ?? null }
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
    this.#unsubscribe()
    await Promise.all([this.#finisher.stop(), this.#claimPoll?.stop(), this.#wakeUps?.stop()])
    await this.#writer.stop()
  }

  async #start(jobId: string, isDone: () => boolean): Promise<void> {
    const { database, egresses, queue } = this.#deps
    const before = await this.#starter.retryWhileBusy(() => findJob(database, jobId), isDone)
    if (before === null) return
    // Rows of a list that was cancelled and resumed may still be in flight.
    await this.#runs.get(jobId)
    if (isDone()) return
    const start: (...args: Parameters<typeof startJob>) => Promise<Job | null> =
      this.#cluster === null ? startJob : startSharedJob
    const job = await this.#starter.retryWhileBusy(() => start(database, jobId), isDone)
    if (isDone() || job === null || job.finished_at !== null) return
    const activeJob = this.#activeJobs.add(job)
    if (egresses.length === 0) {
      return this.#starter.retryWhileBusy(async () => queue?.put(WAKE_UP, jobId), isDone)
    }
    const run = this.#retryFaults(activeJob)
      .catch(error => this.#writer.fail(jobId, error))
      .finally(() => this.#runs.delete(jobId))
    this.#runs.set(jobId, run)
  }

  /** Processes a list, again after an internal failure if it cannot be started by its user. */
  #retryFaults(activeJob: ActiveJob): Promise<void> {
    const { database, log, retryStorageErrors = true } = this.#deps
    return retry(() => this.#process(activeJob), {
      clock: database.clock,
      signal: this.#stopping.signal,
      delayMs: this.#timings.retryMs,
      attemptsMax: FAULTS_MAX,
      isRetryable: error =>
        retryStorageErrors && !activeJob.ended.aborted && !isStorageError(error),
      onRetry: error => writeLog(log, JOB_LOG.listRetried, { error: errorMessage(error) }),
    })
  }

  async #process(activeJob: ActiveJob): Promise<void> {
    if (this.#cluster !== null) return this.#processShares(activeJob, this.#cluster)
    return activeJob.engine.isSandbox ? this.#simulate(activeJob) : this.#processAlone(activeJob)
  }

  async #processAlone(activeJob: ActiveJob): Promise<void> {
    const { database, priority = null } = this.#deps
    const signals = this.#listen(activeJob)
    const { draining } = signals
    const rows = new ListRows({
      database,
      writer: this.#writer,
      activeJob,
      priority,
      retryRead: read => this.#starter.retryWhileBusy(read, () => draining.signal.aborted),
      timings: this.#timings,
      stopping: draining.signal,
    })
    this.#rows.set(activeJob.id, rows)
    try {
      await rows.load()
      await this.#runRows(activeJob, rows, signals)
    } finally {
      this.#rows.delete(activeJob.id)
      signals.end()
    }
  }

  /**
   * Works on shares of a list until it has ended. A member that was expired, or that lost its
   * connection to the database, continues with another share.
   */
  async #processShares(activeJob: ActiveJob, cluster: WorkerMembership): Promise<void> {
    const { clock } = this.#deps.database
    const done = AbortSignal.any([this.#stopping.signal, activeJob.ended])
    while (!done.aborted) {
      if (cluster.id !== this.#expiredId) await this.#processShare(activeJob, cluster)
      await sleep(clock, this.#timings.rejoinMs, done)
    }
  }

  async #processShare(activeJob: ActiveJob, cluster: WorkerMembership): Promise<void> {
    const { database, log, random, priority = null } = this.#deps
    const holder = cluster.id
    const signals = this.#listen(activeJob)
    const { draining, ending } = signals
    const abort = () => {
      draining.abort()
      ending.abort()
    }
    const unsubscribe = [cluster.onLost(abort), cluster.onSilent(abort)]
    const rows = new ShareRows({
      database,
      writer: this.#writer,
      activeJob,
      holder,
      random,
      priority,
      timings: this.#timings,
      drain: () => draining.abort(),
      stopping: draining.signal,
    })
    try {
      // A claim whose reply was lost may have been committed since the end of the last share.
      await this.#releaseShare(activeJob.id, holder)
      this.#shares.set(activeJob.id, rows)
      if (activeJob.engine.isSandbox) await this.#simulateShare(activeJob, rows)
      else await this.#runRows(activeJob, rows, signals)
    } catch (error) {
      if (!isStorageError(error)) throw error
      writeLog(log, JOB_LOG.claimRetried, { error: errorMessage(error) })
    } finally {
      this.#shares.delete(activeJob.id)
      draining.abort()
      signals.end()
      for (const end of unsubscribe) end()
      await rows.settled()
      await this.#releaseShare(activeJob.id, holder)
    }
  }

  /** Releases what the end of a share has left. During a stop, the end of the membership does it. */
  async #releaseShare(jobId: string, holder: string): Promise<void> {
    const { database, log } = this.#deps
    const isDone = () => this.#stopping.signal.aborted || this.#expiredId === holder
    if (isDone()) return
    await this.#writer.flushed().catch(() => {})
    const release = () => releaseShare(database, { jobId, holder })
    await this.#starter.retryWhileBusy(release, isDone).catch(error => {
      if (!isDone()) writeLog(log, JOB_LOG.rowsNotReleased, { error: errorMessage(error) })
    })
  }

  #runRows<T extends ListItem>(
    activeJob: ActiveJob,
    rows: Feed<T> & Sink<T>,
    { draining, ending }: RunSignals,
  ): Promise<void> {
    return this.#schedulerFor(activeJob.engine).run(rows, rows, {
      canRefuse: true,
      route: activeJob.options,
      signal: ending.signal,
      drain: draining.signal,
      finish: activeJob.finishing,
    })
  }

  /** Drains a run when its list ends or the worker stops, and aborts it if that takes too long. */
  #listen(activeJob: ActiveJob): RunSignals {
    const { clock } = this.#deps.database
    const draining = new AbortController()
    const ending = new AbortController()
    let cancelTimer = () => {}
    const subscriptions = [
      onAbort(this.#stopping.signal, () => draining.abort()),
      onAbort(this.#abort.signal, () => ending.abort()),
      onAbort(activeJob.ended, () => {
        draining.abort()
        cancelTimer = clock.after(this.#timings.drainMs, () => ending.abort())
      }),
    ]
    return {
      draining,
      ending,
      end() {
        cancelTimer()
        for (const unsubscribe of subscriptions) unsubscribe()
      },
    }
  }

  #schedulerFor(engine: Engine): Scheduler {
    const { database, concurrency, greylistDelayMs, wait, priority = null } = this.#deps
    this.#scheduler ??= new Scheduler(engine, {
      clock: database.clock,
      concurrency,
      greylistDelayMs,
      windowMax: this.#windowMax,
      wait,
      urgent: false,
      isFull: () => this.#writer.isFull,
      priority,
    })
    return this.#scheduler
  }

  get #windowMax(): number {
    const { concurrency } = this.#deps
    if (this.#cluster === null) return WINDOW_MAX
    return Math.min(SHARE_MAX, SHARE_PER_CONNECTION * concurrency)
  }

  /** Gives the rows of a share of a simulated list their results. */
  async #simulateShare({ engine }: ActiveJob, rows: ShareRows): Promise<void> {
    for (;;) {
      const page = await rows.read(SIMULATED_PER_TURN)
      if (page === null) return
      const prepared = await Promise.all(page.map(({ text }) => engine.routeOne(text)))
      for (const [index, { item }] of page.entries()) {
        const one = prepared[index]
        if (one !== undefined && 'result' in one) rows.decided(item, one.result)
      }
    }
  }

  /** Gives the rows of a simulated list their results; none is probed. */
  async #simulate(activeJob: ActiveJob): Promise<void> {
    const { database, priority = null } = this.#deps
    const ends = [this.#stopping.signal, activeJob.ended]
    const size = priority === null ? SIMULATED_PER_PAGE : SIMULATED_PER_TURN
    const isDone = () => ends.some(({ aborted }) => aborted)
    for (let after = 0; !isDone(); ) {
      await this.#writer.settled()
      await priority?.yieldToRequests('route')
      const read = () => queuedItems(database, { jobId: activeJob.id, after, max: size })
      const page = await this.#starter.retryWhileBusy(read, isDone)
      const prepared = await activeJob.engine.route(page.map(({ text }) => text))
      const results = page.flatMap(({ position, copies }, index) => {
        const one = prepared[index]
        return one !== undefined && 'result' in one
          ? [{ position, copies, result: toRowResult(one.result) }]
          : []
      })
      if (results.length > 0) void this.#writer.add(activeJob.id, { results })
      if (page.length < size) return
      after = page.at(-1)?.position ?? after
    }
  }

  async #onWakeUp(jobId: string): Promise<Reschedule> {
    this.take(jobId)
    return 'done'
  }

  /** Tells the shares what there is to claim. */
  async #offerClaimable(): Promise<void> {
    const { database, egresses } = this.#deps
    const lists = [...this.#shares.keys()].map(jobId => ({
      jobId,
      isFinishing: this.#activeJobs.get(jobId)?.finishing.aborted ?? false,
    }))
    if (lists.length === 0) return
    const now = database.steadyClock.now()
    for (const claimable of await findClaimable(database, { lists, egresses, now })) {
      this.#shares.get(claimable.jobId)?.offer(claimable)
    }
  }

  async #finishRequested(): Promise<void> {
    for (const id of await listJobsToFinish(this.#deps.database)) {
      const activeJob = this.#activeJobs.get(id)
      if (activeJob === undefined || this.#announced.has(activeJob)) continue
      this.#announced.add(activeJob)
      this.#deps.onFinishing?.(id)
      this.#activeJobs.finish(id)
    }
  }

  #onProgress(job: Job) {
    if (job.finished_at !== null) this.#activeJobs.drop(job.id)
    this.#waiters.notify(job.id, job)
    this.#reporter.progressed(job)
  }
}
