import { type Clock, MINUTE, sleep } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import type { LogEvent, LogFields } from '../platform/log.ts'
import {
  DEFAULT_QUEUE_TIMINGS,
  type Handler,
  type Lease,
  type QueueTimings,
  type Worker,
  type WorkOptions,
} from './queue.ts'
import { QUEUE_LOG } from './telemetry.ts'

/** Maximum tasks per claim. */
const CLAIM_MAX = 500
/** How long a claim is reused for further runs: pg-boss ends a claim after 24 hours. */
const REPEAT_MS = MINUTE

type TaskConsumerDeps = {
  readonly store: TaskStore
  readonly clock: Clock
  readonly timings?: QueueTimings
  /** Logs a database fault. */
  readonly onFault: (event: LogEvent, fields: LogFields) => void
  /** Logs an error thrown by a handler. */
  readonly onFailure: (fields: LogFields) => void
}

type Run = {
  readonly claim: Claim
  readonly claimedAt: number
  readonly lost: AbortController
  /** Monotonic time until which no other worker can claim the task. */
  aliveUntil: number
  /** False while only its completion is still to be written. */
  isActive: boolean
  /** Due time of a put during the run, monotonic time. */
  putAt: number | null
  ended: Promise<void>
}

/**
 * Runs tasks of one kind that several processes share. The store has due tasks only; a task due
 * later is held in memory by the process that enqueued it.
 */
export class TaskConsumer {
  readonly #deps: TaskConsumerDeps
  readonly #clock: Clock
  readonly #timings: QueueTimings
  readonly #added: TurnBatcher<string>
  readonly #completed: TurnBatcher<Claim>
  readonly #stopping = new AbortController()
  /** The latest run of each key. */
  readonly #runs = new Map<string, Run>()
  readonly #later = new Map<string, { readonly dueAt: number; readonly cancel: () => void }>()
  #handler: Handler | null = null
  #options: WorkOptions = { concurrency: 0 }
  #active = 0
  /** There may be unclaimed tasks. */
  #mayHaveTasks = true
  #claiming: Promise<void> | null = null
  #isRenewing = false
  #renewedAt = Number.NEGATIVE_INFINITY

  constructor(deps: TaskConsumerDeps) {
    this.#deps = deps
    this.#clock = deps.clock
    this.#timings = deps.timings ?? DEFAULT_QUEUE_TIMINGS
    this.#completed = new TurnBatcher(claims => deps.store.complete(claims))
    this.#added = new TurnBatcher(async keys => {
      await deps.store.add([...new Set(keys)])
      this.wake()
    })
  }

  async put(keys: readonly string[], waitMs: number): Promise<void> {
    const dueAt = this.#clock.monotonicNow() + waitMs
    const due = keys.filter(key => !this.#defer(key, dueAt))
    if (due.length > 0) await this.#added.add(due)
  }

  work(handler: Handler, options: WorkOptions): Worker {
    this.#handler = handler
    this.#options = options
    this.wake()
    return { stop: () => this.stop() }
  }

  /** Drops the tasks due later; reconciliation enqueues them when they are overdue. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const { cancel } of this.#later.values()) cancel()
    this.#later.clear()
    await this.#claiming
    await Promise.all([...this.#runs.values()].map(({ ended }) => ended))
  }

  /** Resolves once all puts are written or have failed. */
  flushed(): Promise<void> {
    return this.#added.flushed()
  }

  /** Claims tasks if there are any. */
  wake(): void {
    this.#mayHaveTasks = true
    this.#claimMore()
  }

  /** Renews claims, and gives up those that could not be renewed in time. */
  renewClaims(): void {
    const now = this.#clock.monotonicNow()
    const runs = [...this.#runs.values()].filter(({ isActive }) => isActive)
    for (const run of runs) if (now >= run.aliveUntil) run.lost.abort()
    if (runs.length === 0 || this.#isRenewing || now - this.#renewedAt < this.#timings.touchMs)
      return
    void this.#renew(runs)
  }

  /** Holds a task until it is due. Returns false if it is due now and belongs in the store. */
  #defer(key: string, dueAt: number): boolean {
    const run = this.#runs.get(key)
    const later = this.#later.get(key)
    if (run !== undefined && !run.lost.signal.aborted) {
      run.putAt = earliest(run.putAt, dueAt)
      return true
    }
    const isDue = dueAt <= this.#clock.monotonicNow()
    if (!isDue && (later?.dueAt ?? Number.POSITIVE_INFINITY) <= dueAt) return true
    this.#cancelDeferred(key)
    if (!isDue) this.#schedule(key, dueAt)
    return !isDue
  }

  #schedule(key: string, dueAt: number) {
    if (this.#stopping.signal.aborted) return
    const cancel = this.#clock.after(Math.ceil(dueAt - this.#clock.monotonicNow()), () => {
      this.#later.delete(key)
      void this.#requeue(key, dueAt)
    })
    this.#later.set(key, { dueAt, cancel })
  }

  #cancelDeferred(key: string) {
    this.#later.get(key)?.cancel()
    this.#later.delete(key)
  }

  /** Retries while the database is unavailable. */
  async #requeue(key: string, dueAt: number): Promise<void> {
    try {
      await this.put([key], dueAt - this.#clock.monotonicNow())
    } catch (error) {
      this.#deps.onFault(QUEUE_LOG.taskNotEnqueued, {
        key,
        error: errorMessage(error),
      })
      await this.put([key], this.#timings.retryMs)
    }
  }

  #claimMore() {
    const isFree = this.#claiming === null && this.#active < this.#options.concurrency
    if (!isFree || !this.#mayHaveTasks || this.#stopping.signal.aborted) return
    this.#claiming = this.#claim().finally(() => {
      this.#claiming = null
      this.#claimMore()
    })
  }

  async #claim(): Promise<void> {
    const max = Math.min(this.#options.concurrency - this.#active, CLAIM_MAX)
    const since = this.#clock.monotonicNow()
    this.#mayHaveTasks = false
    try {
      const claims = await this.#deps.store.claim(max)
      if (claims.length === max) this.#mayHaveTasks = true
      for (const claim of claims) this.#startRun(claim, since)
    } catch (error) {
      this.#mayHaveTasks = true
      const why = { error: errorMessage(error) }
      this.#deps.onFault(QUEUE_LOG.tasksNotClaimed, why)
      await sleep(this.#clock, this.#timings.retryMs, this.#stopping.signal)
    }
  }

  #startRun(claim: Claim, since: number) {
    const previous = this.#runs.get(claim.key)
    previous?.lost.abort()
    this.#cancelDeferred(claim.key)
    const run: Run = {
      claim,
      claimedAt: since,
      aliveUntil: since + this.#timings.aliveMs,
      lost: new AbortController(),
      isActive: true,
      putAt: null,
      ended: Promise.resolve(),
    }
    this.#active++
    this.#runs.set(claim.key, run)
    run.ended = this.#run(run, previous?.ended)
  }

  /**
   * An earlier run of the same task in this process, whose claim was lost, ends first: a task never
   * runs twice at the same time.
   */
  async #run(run: Run, previous: Promise<void> | undefined): Promise<void> {
    await previous
    let dueAt: number | null
    do dueAt = await this.#handle(run)
    while (this.#mayRepeat(run, dueAt))
    run.isActive = false
    this.#active--
    this.#claimMore()
    const { key } = run.claim
    if (await this.#complete(run.claim)) {
      dueAt = earliest(dueAt, run.putAt)
    } else dueAt = null
    if (this.#runs.get(key) === run) this.#runs.delete(key)
    if (dueAt !== null) await this.#requeue(key, dueAt)
  }

  /** Runs the handler once. Returns when the task is due again. */
  async #handle(run: Run): Promise<number | null> {
    const { lost, claim } = run
    const stopping = this.#stopping.signal
    run.putAt = null
    if (this.#handler === null || stopping.aborted) return this.#clock.monotonicNow()
    const next = await this.#dueAt(claim.key, this.#handler, { stopping, lost: lost.signal })
    return earliest(next, run.putAt)
  }

  /** A claim is reused only if no other task may be waiting. */
  #mayRepeat({ lost, claimedAt }: Run, dueAt: number | null): boolean {
    const now = this.#clock.monotonicNow()
    const isDone = this.#stopping.signal.aborted || lost.signal.aborted || this.#mayHaveTasks
    return !isDone && dueAt !== null && dueAt <= now && now - claimedAt < REPEAT_MS
  }

  /**
   * Returns false if the completion could not be written before the stop; the claim then expires.
   */
  async #complete(claim: Claim): Promise<boolean> {
    for (;;) {
      try {
        await this.#completed.add([claim])
        return true
      } catch (error) {
        const why = { error: errorMessage(error) }
        this.#deps.onFault(QUEUE_LOG.completionNotWritten, why)
        if (this.#stopping.signal.aborted) return false
        await sleep(this.#clock, this.#timings.retryMs, this.#stopping.signal)
      }
    }
  }

  /** Returns the due time, monotonic; null if the task is done. */
  async #dueAt(key: string, handler: Handler, lease: Lease): Promise<number | null> {
    try {
      const due = await handler(key, lease)
      return due === 'done' ? null : this.#clock.monotonicNow() + due.dueAt - this.#clock.now()
    } catch (error) {
      this.#deps.onFailure({ key, error: errorMessage(error) })
      return this.#clock.monotonicNow() + this.#timings.retryMs
    }
  }

  async #renew(runs: readonly Run[]): Promise<void> {
    const since = this.#clock.monotonicNow()
    this.#isRenewing = true
    this.#renewedAt = since
    try {
      const renewed = await this.#deps.store.touch(runs.map(({ claim }) => claim))
      for (const run of runs) {
        if (renewed.has(run.claim.id)) run.aliveUntil = since + this.#timings.aliveMs
        else if (run.isActive) run.lost.abort()
      }
    } catch (error) {
      this.#renewedAt = Number.NEGATIVE_INFINITY
      this.#deps.onFault(QUEUE_LOG.claimsNotRenewed, { error: errorMessage(error) })
    }
    this.#isRenewing = false
  }
}

const earliest = (a: number | null, b: number | null) =>
  a === null || b === null ? (a ?? b) : Math.min(a, b)

/**
 * Batches items: those added while a batch is in flight form the next one, so that round trips
 * decrease under load.
 */
class TurnBatcher<T> {
  readonly #send: (batch: readonly T[]) => Promise<void>
  #waiting: T[] = []
  /** The batch after the one in flight. */
  #next: Promise<void> | null = null
  #inFlight: Promise<void> = Promise.resolve()

  constructor(send: (batch: readonly T[]) => Promise<void>) {
    this.#send = send
  }

  /** Resolves or rejects with the batch of these items. */
  add(items: readonly T[]): Promise<void> {
    for (const item of items) this.#waiting.push(item)
    this.#next ??= this.#follow(this.#inFlight)
    return this.#next
  }

  /** Resolves once all items so far are sent or have failed. */
  async flushed(): Promise<void> {
    await this.#next?.catch(() => {})
    await this.#inFlight.catch(() => {})
  }

  async #follow(previous: Promise<void>): Promise<void> {
    await previous.catch(() => {})
    const batch = this.#waiting
    this.#waiting = []
    this.#next = null
    this.#inFlight = this.#send(batch)
    await this.#inFlight
  }
}

/** A claim on one task; `attempt` changes with each claim. */
export type Claim = { readonly key: string; readonly id: string; readonly attempt: number }

/** Storage of the due tasks of one kind, shared by all processes. Failed calls may be repeated. */
export interface TaskStore {
  /** Adds tasks; a key that is waiting or running is skipped without an error. */
  add(keys: readonly string[]): Promise<void>
  /** Claims tasks, oldest first. */
  claim(max: number): Promise<Claim[]>
  /** Removes the tasks whose claims are still valid. */
  complete(claims: readonly Claim[]): Promise<void>
  /** Renews claims and returns the IDs of those that are still valid. */
  touch(claims: readonly Claim[]): Promise<ReadonlySet<string>>
}
