import { sleep } from '../../base/clock.ts'
import type { Remembered } from '../../engine/memory.ts'
import { memoryQueue } from '../../queue/memory-queue.ts'
import type { Lease, NextDue, Queue, Worker } from '../../queue/queue.ts'
import { beginJob, openAmong } from '../../store/cluster/shared-jobs.ts'
import { isOfStorage } from '../../store/database.ts'
import { refuseCancelled, startJob } from '../../store/job/course.ts'
import { findJob, type Job } from '../../store/job/jobs.ts'
import { Claims } from '../probe/claim.ts'
import { directEntries, gatheredEntries, operatorOf, probeKind } from '../probe/entries.ts'
import { Slots } from '../probe/slots.ts'
import { Recorder } from '../record/recorder.ts'
import { routeItems } from '../route/route-items.ts'
import type { CrewMembership, WorkerParts } from '../start-worker.ts'
import { Conversations } from './conversations.ts'
import { type CrewTimings, DEFAULT_CREW_TIMINGS } from './crew-timings.ts'
import { type List, Lists } from './lists.ts'
import { Looks } from './looks.ts'
import { Resumption } from './resumption.ts'
import { Strays } from './strays.ts'
import { Taking } from './taking.ts'
import { Waiters } from './waiters.ts'

/** Lists that are routed at the same time; each has its share of what may be under way. */
const ROUTES_MAX = 50
/** A list that cannot be read so often will not be read. */
const ROUTE_FAULTS_MAX = 3

/** Those who work together on all lists: one routes, others ask, one records. */
export class Crew {
  readonly #parts: WorkerParts
  readonly #cluster: CrewMembership | null
  readonly #timings: CrewTimings
  readonly #lists: Lists
  readonly #waiters = new Waiters<Job>()
  readonly #queue: Queue
  readonly #slots: Slots
  readonly #recorder: Recorder
  readonly #resumption: Resumption
  readonly #conversations: Conversations
  readonly #taking: Taking
  /** What others wrote is looked for; null: there are no others. */
  readonly #looks: Looks | null
  readonly #workers: Worker[]
  /** Lists that are being routed. */
  readonly #routing = new Set<string>()
  readonly #stopping = new AbortController()
  readonly #abort = new AbortController()
  #stopped: Promise<void> | null = null

  constructor(parts: WorkerParts) {
    const { database, log, keepsTrying = true, cluster = null, priority = null } = parts
    const { timings = DEFAULT_CREW_TIMINGS } = parts
    const { clock } = database
    const [stopping, abort] = [this.#stopping.signal, this.#abort.signal]
    this.#parts = parts
    this.#cluster = cluster
    this.#timings = timings
    this.#queue = parts.queue ?? memoryQueue(clock, log)
    const find = (ids: readonly string[]) => openAmong(database, ids)
    this.#lists = new Lists({ ...parts, timings, clock, find: cluster === null ? null : find })
    const entries =
      cluster === null ? directEntries(this.#queue) : gatheredEntries(this.#queue, clock, timings)
    this.#slots = new Slots(entries, clock, cluster !== null, timings)
    this.#recorder = new Recorder({
      ...{ ...parts, keepsTrying, timings, priority },
      onProgress: job => this.#onProgress(job),
      onLost: jobId => void this.#onLost(jobId),
      onFailure: (jobId, error) => this.#giveUp(jobId, error),
    })
    this.#resumption = new Resumption(database, this.#slots)
    this.#taking = new Taking({
      ...{ database, log, keepsTrying, stopping, retryMs: timings.retryMs },
      begin: (jobId, isOver) => this.#begin(jobId, isOver),
      onFailure: (jobId, error) => this.#giveUp(jobId, error),
    })
    this.#conversations = new Conversations({
      ...{ ...parts, cluster, stopping, abort, timings, priority },
      ...{ recorder: this.#recorder, lists: this.#lists, slots: this.#slots },
      claims: new Claims(database, this.#lists),
      strays: cluster === null ? null : new Strays({ database, log, cluster, stopping, timings }),
    })
    const look = { database, log, lists: this.#lists, waiters: this.#waiters, stopping, timings }
    const onEnded = (jobId: string) => this.drop(jobId)
    this.#looks = cluster === null ? null : new Looks({ ...look, onEnded })
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
    void findJob(this.#parts.database, jobId).then(
      job => this.#waiters.tell(jobId, job),
      () => this.#waiters.tell(jobId, null),
    )
  }

  /** A job that is finished, or not there any more, does not change. */
  async changed(jobId: string, signal: AbortSignal): Promise<Job | null> {
    if (this.#stopping.signal.aborted) return null
    const next = this.#waiters.next(jobId, signal)
    const job = await findJob(this.#parts.database, jobId)
    if (job === null || job.finished_at !== null) return job
    this.#looks?.follow(job)
    return next
  }

  status() {
    const { waiting, running } = this.#queue.status()
    return { jobs: this.#lists.size + this.#taking.size, waiting, running }
  }

  remember(entries: ReadonlyMap<string, Remembered>): void {
    void this.#recorder.remember(entries)
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  #work(): Worker[] {
    const { concurrency, egresses } = this.#parts
    // Where others ask, they know who may; whoever asks nobody only begins jobs, and hears of them.
    if (egresses.length === 0) return []
    const route = (jobId: string, lease: Lease) => this.#route(jobId, lease)
    const probes = egresses.map(egress => {
      const slotOf = (key: string) => ({ operator: operatorOf(key), egress })
      return this.#queue.work(
        probeKind(egress),
        (key, lease) => this.#conversations.serve(slotOf(key), lease),
        { concurrency, recheck: key => this.#conversations.recheck(slotOf(key)) },
      )
    })
    // Who asks nobody leaves all of it to others.
    if (probes.length === 0) return []
    return [this.#queue.work('route', route, { concurrency: ROUTES_MAX }), ...probes]
  }

  /** What was under way when the job was last worked on is asked again; what others ask about stays theirs. */
  async #begin(jobId: string, isOver: () => boolean): Promise<void> {
    const { database } = this.#parts
    const start = this.#cluster === null ? startJob : beginJob
    const before = await this.#taking.patiently(() => findJob(database, jobId), isOver)
    if (before === null) return
    const job = await this.#taking.patiently(() => start(database, jobId), isOver)
    if (isOver() || job === null || job.finished_at !== null) return
    const list = this.#lists.add(job)
    const isResumed = before.state !== 'queued' && this.#parts.egresses.length > 0
    if (isResumed) await this.#resumption.take(list)
    await this.#taking.patiently(() => this.#queue.put('route', jobId), isOver)
  }

  async #route(jobId: string, { lost }: Lease): Promise<NextDue> {
    const stopping = AbortSignal.any([this.#stopping.signal, lost])
    const list = await this.#listToRoute(jobId)
    if (list === null) return 'done'
    this.#routing.add(jobId)
    try {
      await routeItems(
        {
          ...{ database: this.#parts.database, recorder: this.#recorder, routing: this.#routing },
          stopping,
          priority: this.#parts.priority ?? null,
          onFiled: (list, operator) => this.#slots.gather(list, operator),
        },
        list,
      )
    } catch (error) {
      if (isOfStorage(error) || ++list.routeFaults < ROUTE_FAULTS_MAX) throw error
      await this.#recorder.fail(jobId, error)
    } finally {
      this.#routing.delete(jobId)
    }
    await this.#slots.ripen(list)
    // What is left of it another goes on with.
    return stopping.aborted ? { dueAt: this.#parts.database.clock.now() } : 'done'
  }

  /** Where others work too, whoever has the entry begins the job. */
  async #listToRoute(jobId: string): Promise<List | null> {
    if (this.#cluster === null) return this.#lists.get(jobId) ?? null
    const job = await beginJob(this.#parts.database, jobId)
    return job === null ? null : this.#lists.add(job)
  }

  #onProgress(job: Job) {
    if (job.finished_at !== null) this.#lists.drop(job.id)
    this.#waiters.tell(job.id, job)
    this.#parts.onProgress?.(job)
  }

  /** Cancelled or deleted behind our back. */
  async #onLost(jobId: string): Promise<void> {
    if (this.#lists.get(jobId) === undefined) return
    this.drop(jobId)
    try {
      const job = await findJob(this.#parts.database, jobId)
      if (job !== null) refuseCancelled(job)
    } catch (error) {
      this.#giveUp(jobId, error)
    }
  }

  #giveUp(jobId: string, error: unknown) {
    this.#lists.drop(jobId)
    this.#parts.onFailure?.(jobId, error)
  }

  async #stop(): Promise<void> {
    const { database, queue } = this.#parts
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
    this.#conversations.end()
    await this.#taking.idle()
    await this.#recorder.stop()
  }
}
