import { type Database, isStorageError } from '../../db/database.ts'
import type { CachedAnswer } from '../../engine/result-cache.ts'
import { sleep, yieldToEventLoop } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, type LoopOptions, startLoop } from '../../platform/loop.ts'
import { memoryQueue } from '../../queue/memory-queue.ts'
import type { Lease, Queue, Reschedule, Worker } from '../../queue/queue.ts'
import { pinnedItems, unpinItems, type Waiting, waitingPage } from '../item-claims.ts'
import { refuseCancelled, startJob } from '../job-state.ts'
import { startSharedJob, findJob, type Job, jobsAmong, openJobsAmong } from '../job-store.ts'
import { Claims } from '../probing/claims.ts'
import { ProbeScheduler } from '../probing/probe-scheduler.ts'
import { directTasks, gatheredTasks, operatorOf, probeKind } from '../probing/probe-tasks.ts'
import { routeItems } from '../probing/route-items.ts'
import { ResultWriter } from '../results/result-writer.ts'
import { type ActiveJob, ActiveJobs, JobStarter, JobWaiters } from './active-jobs.ts'
import { OrphanedClaims } from './orphaned-claims.ts'
import { ProbeExecutor } from './probe-executor.ts'
import type { WorkerDeps, WorkerMembership } from './worker-deps.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from './worker-timings.ts'

/** Lists that are routed at the same time; each has its share of what may be under way. */
const ROUTES_MAX = 50
/** A list that cannot be read so often will not be read. */
const ROUTE_FAULTS_MAX = 3

/** Those who work together on all lists: one routes, others ask, one records. */
export class JobWorker {
  readonly #deps: WorkerDeps
  readonly #cluster: WorkerMembership | null
  readonly #timings: WorkerTimings
  readonly #lists: ActiveJobs
  readonly #waiters = new JobWaiters<Job>()
  readonly #queue: Queue
  readonly #slots: ProbeScheduler
  readonly #recorder: ResultWriter
  readonly #resumption: Resumption
  readonly #executor: ProbeExecutor
  readonly #taking: JobStarter
  /** What others wrote is looked for; null: there are no others. */
  readonly #looks: ChangePoller | null
  readonly #workers: Worker[]
  /** Lists that are being routed. */
  readonly #routing = new Set<string>()
  readonly #stopping = new AbortController()
  readonly #abort = new AbortController()
  #stopped: Promise<void> | null = null

  constructor(deps: WorkerDeps) {
    const { database, log, keepsTrying = true, cluster = null, priority = null } = deps
    const { timings = DEFAULT_WORKER_TIMINGS } = deps
    const { clock } = database
    const [stopping, abort] = [this.#stopping.signal, this.#abort.signal]
    this.#deps = deps
    this.#cluster = cluster
    this.#timings = timings
    this.#queue = deps.queue ?? memoryQueue(clock, log)
    const find = (ids: readonly string[]) => openJobsAmong(database, ids)
    this.#lists = new ActiveJobs({ ...deps, timings, clock, find: cluster === null ? null : find })
    const entries =
      cluster === null ? directTasks(this.#queue) : gatheredTasks(this.#queue, clock, timings)
    this.#slots = new ProbeScheduler(entries, clock, cluster !== null, timings)
    this.#recorder = new ResultWriter({
      ...{ ...deps, keepsTrying, timings, priority },
      onProgress: job => this.#onProgress(job),
      onLost: jobId => void this.#onLost(jobId),
      onFailure: (jobId, error) => this.#giveUp(jobId, error),
    })
    this.#resumption = new Resumption(database, this.#slots)
    this.#taking = new JobStarter({
      ...{ database, log, keepsTrying, stopping, retryMs: timings.retryMs },
      begin: (jobId, isDone) => this.#begin(jobId, isDone),
      onFailure: (jobId, error) => this.#giveUp(jobId, error),
    })
    this.#executor = new ProbeExecutor({
      ...{ ...deps, cluster, stopping, abort, timings, priority },
      ...{ recorder: this.#recorder, lists: this.#lists, slots: this.#slots },
      claims: new Claims(database, this.#lists),
      orphans:
        cluster === null ? null : new OrphanedClaims({ database, log, cluster, stopping, timings }),
    })
    const look = { database, log, lists: this.#lists, waiters: this.#waiters, stopping, timings }
    const onEnded = (jobId: string) => this.drop(jobId)
    this.#looks = cluster === null ? null : new ChangePoller({ ...look, onEnded })
    this.#workers = this.#work()
  }

  take(jobId: string): void {
    // Where others work too, having met a list does not mean that its entry is there.
    if (this.#cluster === null && this.#lists.get(jobId) !== undefined) return
    this.#taking.take(jobId)
  }

  drop(jobId: string): void {
    this.#taking.drop(jobId)
    this.#lists.drop(jobId)
    void findJob(this.#deps.database, jobId).then(
      job => this.#waiters.notify(jobId, job),
      () => this.#waiters.notify(jobId, null),
    )
  }

  /** A job that is finished, or not there any more, does not change. */
  async changed(jobId: string, signal: AbortSignal): Promise<Job | null> {
    if (this.#stopping.signal.aborted) return null
    const next = this.#waiters.next(jobId, signal)
    const job = await findJob(this.#deps.database, jobId)
    if (job === null || job.finished_at !== null) return job
    this.#looks?.follow(job)
    return next
  }

  status() {
    const { waiting, running } = this.#queue.status()
    return { jobs: this.#lists.size + this.#taking.size, waiting, running }
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
    // Where others ask, they know who may; whoever asks nobody only begins jobs, and hears of them.
    if (egresses.length === 0) return []
    const route = (jobId: string, lease: Lease) => this.#route(jobId, lease)
    const probes = egresses.map(egress => {
      const slotOf = (key: string) => ({ operator: operatorOf(key), egress })
      return this.#queue.work(
        probeKind(egress),
        (key, lease) => this.#executor.serve(slotOf(key), lease),
        { concurrency, recheck: key => this.#executor.recheck(slotOf(key)) },
      )
    })
    // Who asks nobody leaves all of it to others.
    if (probes.length === 0) return []
    return [this.#queue.work('route', route, { concurrency: ROUTES_MAX }), ...probes]
  }

  /**
   * What was under way when the job was last worked on is asked again; what others ask about stays
   * theirs.
   */
  async #begin(jobId: string, isDone: () => boolean): Promise<void> {
    const { database } = this.#deps
    const start = this.#cluster === null ? startJob : startSharedJob
    const before = await this.#taking.retryWhileBusy(() => findJob(database, jobId), isDone)
    if (before === null) return
    const job = await this.#taking.retryWhileBusy(() => start(database, jobId), isDone)
    if (isDone() || job === null || job.finished_at !== null) return
    const list = this.#lists.add(job)
    const isResumed = before.state !== 'queued' && this.#deps.egresses.length > 0
    if (isResumed) await this.#resumption.take(list)
    await this.#taking.retryWhileBusy(() => this.#queue.put('route', jobId), isDone)
  }

  async #route(jobId: string, { lost }: Lease): Promise<Reschedule> {
    const stopping = AbortSignal.any([this.#stopping.signal, lost])
    const list = await this.#listToRoute(jobId)
    if (list === null) return 'done'
    this.#routing.add(jobId)
    try {
      await routeItems(
        {
          ...{ database: this.#deps.database, recorder: this.#recorder, routing: this.#routing },
          stopping,
          priority: this.#deps.priority ?? null,
          onFiled: (list, operator) => this.#slots.onItemRouted(list, operator),
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
    // What is left of it another goes on with.
    return stopping.aborted ? { dueAt: this.#deps.database.clock.now() } : 'done'
  }

  /** Where others work too, whoever has the entry begins the job. */
  async #listToRoute(jobId: string): Promise<ActiveJob | null> {
    if (this.#cluster === null) return this.#lists.get(jobId) ?? null
    const job = await startSharedJob(this.#deps.database, jobId)
    return job === null ? null : this.#lists.add(job)
  }

  #onProgress(job: Job) {
    if (job.finished_at !== null) this.#lists.drop(job.id)
    this.#waiters.notify(job.id, job)
    this.#deps.onProgress?.(job)
  }

  /** Cancelled or deleted behind our back. */
  async #onLost(jobId: string): Promise<void> {
    if (this.#lists.get(jobId) === undefined) return
    this.drop(jobId)
    try {
      const job = await findJob(this.#deps.database, jobId)
      if (job !== null) refuseCancelled(job)
    } catch (error) {
      this.#giveUp(jobId, error)
    }
  }

  #giveUp(jobId: string, error: unknown) {
    this.#lists.drop(jobId)
    this.#deps.onFailure?.(jobId, error)
  }

  async #stop(): Promise<void> {
    const { database, queue } = this.#deps
    this.#stopping.abort()
    this.#waiters.end()
    // The alarm is put away when all is quiet, or its timer would keep the process for nothing.
    const quiet = new AbortController()
    // A queue that was handed in is closed by whoever made it.
    const close = () =>
      queue === undefined
        ? this.#queue.close()
        : Promise.all(this.#workers.map(worker => worker.stop()))
    const closing = close().finally(() => quiet.abort())
    await sleep(database.clock, this.#timings.drainMs, quiet.signal)
    this.#abort.abort()
    await closing
    this.#executor.end()
    await this.#taking.idle()
    await this.#recorder.stop()
  }
}

type ChangePollerDeps = {
  readonly database: Database
  readonly log: Log
  readonly lists: ActiveJobs
  readonly waiters: JobWaiters<Job>
  /** Called for a job that is not worked on any more. */
  readonly onEnded: (jobId: string) => void
  readonly stopping: AbortSignal
  readonly timings: Pick<WorkerTimings, 'awaitedMs' | 'endedMs'>
}

/** Looks for what other members wrote: jobs that ended, and changes that somebody waits for. */
class ChangePoller {
  readonly #deps: ChangePollerDeps
  /** How awaited jobs stood when they were last looked at. */
  readonly #stands = new Map<string, string>()
  /** Runs while somebody waits. */
  #following: Loop | null = null

  constructor(deps: ChangePollerDeps) {
    this.#deps = deps
    const { endedMs: everyMs } = deps.timings
    this.#start({ name: 'the poll for ended jobs', everyMs, run: () => this.#pollEndedJobs() })
  }

  /** Somebody waits for the next change of a job that stands so. */
  follow(job: Job): void {
    if (!this.#stands.has(job.id)) this.#stands.set(job.id, stateOf(job))
    const { awaitedMs: everyMs } = this.#deps.timings
    this.#following ??= this.#start({
      ...{ name: 'the poll for awaited jobs', everyMs, startAfterMs: everyMs },
      run: () => this.#pollAwaitedJobs(),
    })
  }

  #start(o: Pick<LoopOptions, 'name' | 'everyMs' | 'startAfterMs' | 'run'>): Loop {
    const { database, log, stopping: signal } = this.#deps
    return startLoop({ ...o, clock: database.clock, log, signal })
  }

  #endFollowing() {
    this.#stands.clear()
    void this.#following?.stop()
    this.#following = null
  }

  async #pollAwaitedJobs(): Promise<void> {
    const { database, waiters } = this.#deps
    const ids = waiters.keys
    if (ids.length === 0) return this.#endFollowing()
    const jobs = new Map((await jobsAmong(database, ids)).map(job => [job.id, job]))
    for (const id of ids) {
      const job = jobs.get(id) ?? null
      const stand = job === null ? '' : stateOf(job)
      if (stand === this.#stands.get(id)) continue
      this.#stands.set(id, stand)
      waiters.notify(id, job)
    }
    const awaited = new Set(waiters.keys)
    for (const id of this.#stands.keys()) if (!awaited.has(id)) this.#stands.delete(id)
  }

  async #pollEndedJobs(): Promise<void> {
    const { database, lists, onEnded } = this.#deps
    const ids = lists.ids
    if (ids.length === 0) return
    const open = new Set((await openJobsAmong(database, ids)).map(({ id }) => id))
    for (const id of ids) if (!open.has(id)) onEnded(id)
  }
}

/** What changes with each commit that touches a job. */
const stateOf = ({ state, done, started_at, finished_at }: Job) =>
  [state, done, started_at, finished_at].join(' ')

/** Pairs of operator and list that are read together. */
const PAGE_MAX = 1_000

/**
 * Puts the operators of lists to work that were worked on before: the queue is rebuilt from the
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
   * Lists that are taken together, as at a start, are looked through together: all are in one
   * index.
   */
  take(list: ActiveJob): Promise<void> {
    this.#waiting.set(list.id, list)
    const run = this.#running.then(() => this.#resume())
    this.#running = run.catch(() => {})
    return run
  }

  async #resume(): Promise<void> {
    const lists = new Map(this.#waiting)
    this.#waiting.clear()
    if (lists.size === 0) return
    for (const list of lists.values()) await this.#putBound(list)
    let after: Waiting = { operator: '', jobId: '' }
    for (;;) {
      const page = await waitingPage(this.#database, { after, max: PAGE_MAX })
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
   * Items whose egress the settings no longer have, or no longer for their operator, may be asked
   * by any.
   */
  async #putBound({ id, engine }: ActiveJob): Promise<void> {
    for (const slot of await pinnedItems(this.#database, id)) {
      const { operator, egress } = slot
      if (engine.egressPool.ranked(operator).includes(egress)) await this.#slots.put(slot)
      else await unpinItems(this.#database, { jobId: id, operator, egress })
    }
  }
}
