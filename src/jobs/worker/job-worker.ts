import { type Database, isStorageError } from '../../db/database.ts'
import type { CachedAnswer } from '../../engine/result-cache.ts'
import { sleep, yieldToEventLoop } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, type LoopOptions, startLoop } from '../../platform/loop.ts'
import { createMemoryQueue } from '../../queue/memory-queue.ts'
import type { Lease, Queue, Reschedule, Worker } from '../../queue/queue.ts'
import { listWaitingPairs, pinnedItems, unpinItems, type WaitingPair } from '../item-claims.ts'
import { startJob } from '../job-state.ts'
import {
  findJob,
  findJobsByIds,
  findOpenJobsByIds,
  type Job,
  startSharedJob,
} from '../job-store.ts'
import { Claims } from '../probing/claims.ts'
import { ProbeScheduler } from '../probing/probe-scheduler.ts'
import { batchedTasks, directTasks, parseSlot, probeKind } from '../probing/probe-tasks.ts'
import { routeItems } from '../probing/route-items.ts'
import { SharedClaims } from '../probing/shared-claims.ts'
import { ResultWriter } from '../results/result-writer.ts'
import { type ActiveJob, ActiveJobs, JobStarter, JobWaiters } from './active-jobs.ts'
import { startFinisher } from './finish-waiting.ts'
import { JobReporter } from './job-reporter.ts'
import { OrphanedClaims } from './orphaned-claims.ts'
import { ProbeExecutor } from './probe-executor.ts'
import type { WorkerDeps, WorkerMembership } from './worker-deps.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from './worker-timings.ts'

/** Maximum number of lists routed concurrently; they share the limit on items in flight. */
const ROUTES_MAX = 50
/** Number of routing failures after which a job is marked as failed. */
const ROUTE_FAULTS_MAX = 3

/** Processes jobs: routes their items, probes them and writes their results. */
export class JobWorker {
  readonly #deps: WorkerDeps
  readonly #cluster: WorkerMembership | null
  readonly #timings: WorkerTimings
  readonly #lists: ActiveJobs
  readonly #waiters = new JobWaiters<Job>()
  readonly #queue: Queue
  readonly #slots: ProbeScheduler
  readonly #claims: Claims
  readonly #reporter: JobReporter
  readonly #recorder: ResultWriter
  readonly #resumption: Resumption
  readonly #executor: ProbeExecutor
  readonly #starter: JobStarter
  /** Polls for changes by other members; null without a cluster. */
  readonly #changePoller: ChangePoller | null
  /** Null in a worker without egresses: those that have some do this. */
  readonly #finisher: Loop | null
  readonly #workers: Worker[]
  /** IDs of the lists that are being routed. */
  readonly #routing = new Set<string>()
  readonly #stopping = new AbortController()
  readonly #abort = new AbortController()
  #stopped: Promise<void> | null = null

  constructor(deps: WorkerDeps) {
    const { database, log, retryStorageErrors = true, cluster = null, priority = null } = deps
    const { timings = DEFAULT_WORKER_TIMINGS } = deps
    const { clock, steadyClock } = database
    const [stopping, abort] = [this.#stopping.signal, this.#abort.signal]
    this.#deps = deps
    this.#cluster = cluster
    this.#timings = timings
    this.#queue = deps.queue ?? createMemoryQueue(steadyClock, log)
    const find = (ids: readonly string[]) => findOpenJobsByIds(database, ids)
    this.#lists = new ActiveJobs({ ...deps, timings, clock, find: cluster === null ? null : find })
    const entries =
      cluster === null ? directTasks(this.#queue) : batchedTasks(this.#queue, steadyClock, timings)
    this.#slots = new ProbeScheduler(entries, steadyClock, cluster !== null, timings)
    this.#reporter = new JobReporter({
      ...deps,
      lists: this.#lists,
      drop: jobId => this.drop(jobId),
    })
    this.#recorder = new ResultWriter({
      ...deps,
      retryStorageErrors,
      timings,
      priority,
      onProgress: job => this.#onProgress(job),
      onLost: jobId => void this.#reporter.lost(jobId),
      onFailure: (jobId, error) => this.#reporter.failed(jobId, error),
    })
    this.#claims = new Claims(database, this.#lists)
    this.#resumption = new Resumption(database, this.#slots)
    this.#starter = new JobStarter({
      database,
      log,
      retryStorageErrors,
      stopping,
      retryMs: timings.retryMs,
      start: (jobId, isDone) => this.#startJob(jobId, isDone),
      onFailure: (jobId, error) => void this.#recorder.fail(jobId, error),
    })
    const orphans =
      cluster === null ? null : new OrphanedClaims({ database, log, cluster, stopping, timings })
    const isShared = orphans !== null && database.dialect === 'postgres'
    this.#executor = new ProbeExecutor({
      ...deps,
      cluster,
      stopping,
      abort,
      timings,
      priority,
      recorder: this.#recorder,
      lists: this.#lists,
      slots: this.#slots,
      claims: this.#claims,
      orphans,
      shared: isShared ? new SharedClaims({ database, lists: this.#lists, orphans }) : null,
    })
    const pollerDeps = {
      database,
      log,
      lists: this.#lists,
      waiters: this.#waiters,
      stopping,
      timings,
    }
    const onEnded = (jobId: string) => this.drop(jobId)
    this.#changePoller = cluster === null ? null : new ChangePoller({ ...pollerDeps, onEnded })
    this.#finisher =
      deps.egresses.length === 0
        ? null
        : startFinisher({
            database,
            log,
            lists: this.#lists,
            recorder: this.#recorder,
            stopping,
            timings,
            onFinishing: deps.onFinishing,
          })
    this.#workers = this.#work()
  }

  take(jobId: string): void {
    // In a cluster, the task of an active job may be missing in the queue.
    if (this.#cluster === null && this.#lists.get(jobId) !== undefined) return
    this.#starter.start(jobId)
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
    this.#finisher?.wake()
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
    const { waiting, running } = this.#queue.status()
    return { jobs: this.#lists.size + this.#starter.size, waiting, running }
  }

  cacheResult(entries: ReadonlyMap<string, CachedAnswer>): void {
    void this.#recorder.cacheResult(entries)
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  #work(): Worker[] {
    const { concurrency, egresses } = this.#deps
    // A worker without egresses only starts jobs and polls for their changes; the members that have
    // egresses do the rest.
    if (egresses.length === 0) return []
    const route = (jobId: string, lease: Lease) => this.#route(jobId, lease)
    const probes = egresses.map(egress => {
      const slotOf = (key: string) => parseSlot(key, egress)
      return this.#queue.work(
        probeKind(egress),
        (key, lease) => this.#executor.serve(slotOf(key), lease),
        { concurrency, recheck: key => this.#executor.recheck(slotOf(key)) },
      )
    })
    if (probes.length === 0) return []
    return [this.#queue.work('route', route, { concurrency: ROUTES_MAX }), ...probes]
  }

  /**
   * Starts a job. Items in flight when it was last stopped are probed again; items claimed by other
   * members stay theirs.
   */
  async #startJob(jobId: string, isDone: () => boolean): Promise<void> {
    const { database } = this.#deps
    const start = this.#cluster === null ? startJob : startSharedJob
    const before = await this.#starter.retryWhileBusy(() => findJob(database, jobId), isDone)
    if (before === null) return
    const job = await this.#starter.retryWhileBusy(() => start(database, jobId), isDone)
    if (isDone() || job === null || job.finished_at !== null) return
    const list = this.#lists.add(job)
    const isResumed = before.state !== 'queued' && this.#deps.egresses.length > 0
    if (isResumed) await this.#starter.retryWhileBusy(() => this.#resumption.add(list), isDone)
    await this.#starter.retryWhileBusy(() => this.#queue.put('route', jobId), isDone)
  }

  async #route(jobId: string, { lost }: Lease): Promise<Reschedule> {
    const stopping = AbortSignal.any([this.#stopping.signal, lost])
    const list = await this.#listToRoute(jobId)
    if (list === null) return 'done'
    this.#routing.add(jobId)
    try {
      await routeItems(
        {
          database: this.#deps.database,
          recorder: this.#recorder,
          routing: this.#routing,
          stopping,
          priority: this.#deps.priority ?? null,
          onRouted: (list, routed) => this.#slots.onItemsRouted(list, routed),
        },
        list,
      )
    } catch (error) {
      if (isStorageError(error) || ++list.routeFaults < ROUTE_FAULTS_MAX) throw error
      await this.#recorder.fail(jobId, error)
    } finally {
      this.#routing.delete(jobId)
    }
    await this.#slots.flushJob(list)
    // Another member continues with the rest.
    return stopping.aborted ? { dueAt: this.#deps.database.steadyClock.now() } : 'done'
  }

  /** In a cluster, the member that has the task starts the job. */
  async #listToRoute(jobId: string): Promise<ActiveJob | null> {
    if (this.#cluster === null) return this.#lists.get(jobId) ?? null
    const job = await startSharedJob(this.#deps.database, jobId)
    return job === null ? null : this.#lists.add(job)
  }

  #onProgress(job: Job) {
    if (job.finished_at !== null) this.#lists.drop(job.id)
    this.#waiters.notify(job.id, job)
    this.#reporter.progressed(job)
  }

  async #stop(): Promise<void> {
    const { database, queue } = this.#deps
    this.#stopping.abort()
    this.#waiters.end()
    // Cancels the drain timer when all work has ended, or it would keep the process alive.
    const idle = new AbortController()
    // A queue that was passed in is closed by its owner.
    const close = () =>
      queue === undefined
        ? this.#queue.close()
        : Promise.all(this.#workers.map(worker => worker.stop()))
    const closing = close().finally(() => idle.abort())
    await sleep(database.clock, this.#timings.drainMs, idle.signal)
    this.#abort.abort()
    await closing
    this.#executor.end()
    await this.#starter.idle()
    await this.#finisher?.stop()
    await this.#recorder.stop()
  }
}

type ChangePollerDeps = {
  readonly database: Database
  readonly log: Log
  readonly lists: ActiveJobs
  readonly waiters: JobWaiters<Job>
  /** Called for a job that is no longer open. */
  readonly onEnded: (jobId: string) => void
  readonly stopping: AbortSignal
  readonly timings: Pick<WorkerTimings, 'awaitedPollMs' | 'endedPollMs'>
}

/** Polls for changes by other members: jobs that ended, and changes that clients wait for. */
class ChangePoller {
  readonly #deps: ChangePollerDeps
  /** State of the awaited jobs at the last poll. */
  readonly #changeKeys = new Map<string, string>()
  /** Runs while clients wait for changes. */
  #following: Loop | null = null

  constructor(deps: ChangePollerDeps) {
    this.#deps = deps
    const { endedPollMs: everyMs } = deps.timings
    this.#start({ name: 'the poll for ended jobs', everyMs, run: () => this.#pollEndedJobs() })
  }

  /** Polls for the next change of a job from this state on. */
  follow(job: Job): void {
    if (!this.#changeKeys.has(job.id)) this.#changeKeys.set(job.id, toChangeKey(job))
    const { awaitedPollMs: everyMs } = this.#deps.timings
    this.#following ??= this.#start({
      name: 'the poll for awaited jobs',
      everyMs,
      startAfterMs: everyMs,
      run: () => this.#pollAwaitedJobs(),
    })
  }

  #start(o: Pick<LoopOptions, 'name' | 'everyMs' | 'startAfterMs' | 'run'>): Loop {
    const { database, log, stopping: signal } = this.#deps
    return startLoop({ ...o, clock: database.clock, log, signal })
  }

  #endFollowing() {
    this.#changeKeys.clear()
    void this.#following?.stop()
    this.#following = null
  }

  async #pollAwaitedJobs(): Promise<void> {
    const { database, waiters } = this.#deps
    const ids = waiters.keys
    if (ids.length === 0) return this.#endFollowing()
    const jobs = new Map((await findJobsByIds(database, ids)).map(job => [job.id, job]))
    for (const id of ids) {
      const job = jobs.get(id) ?? null
      const changeKey = job === null ? '' : toChangeKey(job)
      if (changeKey === this.#changeKeys.get(id)) continue
      this.#changeKeys.set(id, changeKey)
      waiters.notify(id, job)
    }
    const awaited = new Set(waiters.keys)
    for (const id of this.#changeKeys.keys()) if (!awaited.has(id)) this.#changeKeys.delete(id)
  }

  async #pollEndedJobs(): Promise<void> {
    const { database, lists, onEnded } = this.#deps
    const ids = lists.ids
    if (ids.length === 0) return
    const open = new Set((await findOpenJobsByIds(database, ids)).map(({ id }) => id))
    for (const id of ids) if (!open.has(id)) onEnded(id)
  }
}

/** Returns a text that changes with each commit that affects a job. */
const toChangeKey = ({ state, done, started_at, finished_at }: Job) =>
  [state, done, started_at, finished_at].join(' ')

/** Pairs of operator and list read per page. */
const PAGE_MAX = 1_000

/**
 * Enqueues the operators of lists that were started before: the queue in memory is rebuilt from the
 * store.
 */
class Resumption {
  readonly #database: Database
  readonly #slots: ProbeScheduler
  readonly #waiting = new Map<string, ActiveJob>()
  #running: Promise<void> = Promise.resolve()

  constructor(database: Database, slots: ProbeScheduler) {
    this.#database = database
    this.#slots = slots
  }

  /**
   * Adds a list. Lists added together, as at startup, are scanned together, because all are in one
   * index.
   */
  add(list: ActiveJob): Promise<void> {
    this.#waiting.set(list.id, list)
    const run = this.#running.then(() => this.#resume())
    this.#running = run.catch(() => {})
    return run
  }

  async #resume(): Promise<void> {
    const lists = new Map(this.#waiting)
    this.#waiting.clear()
    if (lists.size === 0) return
    try {
      await this.#put(lists)
    } catch (error) {
      // The next call, which may be for another list, resumes these too.
      for (const [id, list] of lists) if (!list.ended.aborted) this.#waiting.set(id, list)
      throw error
    }
  }

  async #put(lists: ReadonlyMap<string, ActiveJob>): Promise<void> {
    for (const list of lists.values()) await this.#putPinned(list)
    let after: WaitingPair = { operator: '', jobId: '' }
    for (;;) {
      const page = await listWaitingPairs(this.#database, { after, max: PAGE_MAX })
      for (const { operator, jobId } of page) {
        const engine = lists.get(jobId)?.engine
        if (engine === undefined) continue
        await this.#slots.put({ operator, egress: engine.egressPool.primaryFor(operator) })
      }
      const last = page.at(-1)
      if (last === undefined) return
      after = last
      await yieldToEventLoop()
    }
  }

  /**
   * Enqueues pinned items. Items whose egress is no longer configured, or no longer for their
   * operator, are unpinned so that any egress may probe them.
   */
  async #putPinned({ id, engine }: ActiveJob): Promise<void> {
    for (const slot of await pinnedItems(this.#database, id)) {
      const { operator, egress } = slot
      if (engine.egressPool.ranked(operator).includes(egress)) await this.#slots.put(slot)
      else await unpinItems(this.#database, { jobId: id, operator, egress })
    }
  }
}
