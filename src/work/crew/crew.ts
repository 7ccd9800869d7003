import { SECOND, sleep } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Remembered } from '../../engine/memory.ts'
import { memoryQueue } from '../../queue/memory-queue.ts'
import type { NextDue, Queue } from '../../queue/queue.ts'
import { isOfStorage } from '../../store/database.ts'
import { refuseCancelled, startJob } from '../../store/job/course.ts'
import { findJob, type Job } from '../../store/job/jobs.ts'
import { Claims } from '../probe/claim.ts'
import { DRAIN_MS } from '../probe/farewell.ts'
import { probeItems } from '../probe/probe-items.ts'
import { Slots, slotOf } from '../probe/slots.ts'
import { Recorder } from '../record/recorder.ts'
import { type RouteWork, routeItems } from '../route/route-items.ts'
import type { WorkerParts } from '../start-worker.ts'
import { Lists } from './lists.ts'
import { Resumption } from './resumption.ts'
import { Waiters } from './waiters.ts'

/** Lists that are routed at the same time; each has its share of what may be under way. */
const ROUTES_MAX = 50
/** A list that cannot be read so often will not be read. */
const ROUTE_FAULTS_MAX = 3
/** After a job could not be taken up because of the disk. */
const RETRY_MS = SECOND

/** Those who work together on all lists: one routes, others ask, one records. */
export class Crew {
  readonly #parts: WorkerParts
  readonly #lists = new Lists()
  readonly #waiters = new Waiters<Job>()
  readonly #queue: Queue
  readonly #slots: Slots
  readonly #recorder: Recorder
  readonly #resumption: Resumption
  /** Lists that are being routed. */
  readonly #routing = new Set<string>()
  /** Jobs that are being taken up. */
  readonly #taking = new Map<string, { run: Promise<void>; dropped: boolean }>()
  readonly #stopping = new AbortController()
  readonly #abort = new AbortController()
  #stopped: Promise<void> | null = null

  constructor(parts: WorkerParts) {
    const { database, log, keepsTrying = true } = parts
    this.#parts = parts
    this.#queue = memoryQueue(database.clock, log)
    this.#slots = new Slots(this.#queue, database.clock)
    this.#recorder = new Recorder({
      ...parts,
      keepsTrying,
      onProgress: job => this.#onProgress(job),
      onLost: jobId => void this.#onLost(jobId),
      onFailure: (jobId, error) => this.#giveUp(jobId, error),
    })
    this.#resumption = new Resumption(database, this.#slots)
    this.#work()
  }

  take(jobId: string): void {
    if (this.#stopping.signal.aborted) return
    if (this.#lists.get(jobId) !== undefined || this.#taking.has(jobId)) return
    const taking = { run: Promise.resolve(), dropped: false }
    this.#taking.set(jobId, taking)
    taking.run = this.#begin(jobId, () => taking.dropped || this.#stopping.signal.aborted)
      .catch(error => this.#giveUp(jobId, error))
      .finally(() => this.#taking.delete(jobId))
  }

  drop(jobId: string): void {
    const taking = this.#taking.get(jobId)
    if (taking !== undefined) taking.dropped = true
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
    return job === null || job.finished_at !== null ? job : next
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

  #work() {
    const { concurrency } = this.#parts
    this.#queue.work('route', jobId => this.#route(jobId), { concurrency: ROUTES_MAX })
    const work = {
      ...this.#parts,
      ...{ recorder: this.#recorder, lists: this.#lists, slots: this.#slots },
      claims: new Claims(this.#parts.database, this.#lists),
      ...{ stopping: this.#stopping.signal, abort: this.#abort.signal },
    }
    this.#queue.work('probe', key => probeItems(work, slotOf(key)), { concurrency })
  }

  /** What was under way when the job was last worked on is asked again. */
  async #begin(jobId: string, isOver: () => boolean): Promise<void> {
    const { database, engineFor, wait } = this.#parts
    const before = await this.#patiently(() => findJob(database, jobId), isOver)
    if (before === null) return
    const job = await this.#patiently(() => startJob(database, jobId), isOver)
    if (isOver() || job.finished_at !== null) return
    const list = this.#lists.add(job, engineFor(job), wait(job))
    if (before.state !== 'queued') await this.#resumption.take(list)
    await this.#queue.put('route', jobId)
  }

  async #patiently<T>(run: () => Promise<T>, isOver: () => boolean): Promise<T> {
    for (;;) {
      try {
        return await run()
      } catch (error) {
        const { keepsTrying = true, database, log } = this.#parts
        if (!keepsTrying || isOver() || !isOfStorage(error)) throw error
        log.error('a job cannot be taken up now; that is tried again', { error: messageOf(error) })
        await sleep(database.clock, RETRY_MS, this.#stopping.signal)
      }
    }
  }

  async #route(jobId: string): Promise<NextDue> {
    const list = this.#lists.get(jobId)
    if (list === undefined) return 'done'
    this.#routing.add(jobId)
    try {
      await routeItems(this.#routeWork, list)
    } catch (error) {
      if (isOfStorage(error) || ++list.routeFaults < ROUTE_FAULTS_MAX) throw error
      await this.#recorder.fail(jobId, error)
    } finally {
      this.#routing.delete(jobId)
    }
    await this.#slots.ripen(list)
    return 'done'
  }

  get #routeWork(): RouteWork {
    return {
      ...{ database: this.#parts.database, recorder: this.#recorder },
      ...{ stopping: this.#stopping.signal, routing: this.#routing },
      onFiled: (list, operator) => this.#slots.gather(list, operator),
    }
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
    const { clock } = this.#parts.database
    this.#stopping.abort()
    this.#waiters.end()
    // The alarm is put away when all is quiet, or its timer would keep the process for nothing.
    const quiet = new AbortController()
    const closing = this.#queue.close().finally(() => quiet.abort())
    await sleep(clock, DRAIN_MS, quiet.signal)
    this.#abort.abort()
    await closing
    await Promise.all([...this.#taking.values()].map(({ run }) => run))
    await this.#recorder.stop()
  }
}
