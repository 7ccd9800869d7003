import { type Clock, MINUTE, sleep } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import type { LogFields } from '../platform/log.ts'
import type { Handler, Reschedule, Worker, WorkOptions } from './queue.ts'
import { DEFAULT_QUEUE_TIMINGS, type QueueTimings } from './queue-timings.ts'

/** Tasks claimed by one call. */
const CLAIM_MAX = 500
/** A claim serves several runs for so long: pg-boss ends one after 24 hours. */
const REPEAT_MS = MINUTE

export type TaskConsumerDeps = {
  readonly store: TaskStore
  readonly clock: Clock
  readonly timings?: QueueTimings
  /** Logs a fault of the database. */
  readonly onFault: (message: string, fields: LogFields) => void
  /** Logs a handler that threw. */
  readonly onFailure: (fields: LogFields) => void
}

type Run = {
  readonly claim: Claim
  readonly claimedAt: number
  readonly lost: AbortController
  /** By the monotonic clock: until then nobody else has the task. */
  aliveUntil: number
  /** False: only its end is still to be written. */
  isActive: boolean
  /** Put again here while it ran: when it is due, by the monotonic clock. */
  putAt: number | null
  ended: Promise<void>
}

/**
 * Works on tasks of one kind that many processes share. The store has those that are due now alone;
 * one that is due later waits in the memory of the process that was told so.
 */
export class TaskConsumer {
  readonly #deps: TaskConsumerDeps
  readonly #clock: Clock
  readonly #timings: QueueTimings
  readonly #added: TurnBatcher<string>
  readonly #completed: TurnBatcher<Claim>
  readonly #stopping = new AbortController()
  /** The newest run of each key. */
  readonly #runs = new Map<string, Run>()
  readonly #later = new Map<string, { readonly dueAt: number; readonly cancel: () => void }>()
  #handler: Handler | null = null
  #options: WorkOptions = { concurrency: 0 }
  #active = 0
  /** Tasks may wait that nobody has claimed. */
  #mayWait = true
  #claiming: Promise<void> | null = null
  #touching = false
  #touchedAt = Number.NEGATIVE_INFINITY

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

  /** What is due later is dropped: reconciliation finds it when it is overdue. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const { cancel } of this.#later.values()) cancel()
    this.#later.clear()
    await this.#claiming
    await Promise.all([...this.#runs.values()].map(({ ended }) => ended))
  }

  /** When all puts are written, or failed. */
  quiet(): Promise<void> {
    return this.#added.quiet()
  }

  /** Tasks that wait here until they are due. */
  get later(): number {
    return this.#later.size
  }

  /** There may be tasks to claim. */
  wake(): void {
    this.#mayWait = true
    this.#claimMore()
  }

  /** Renews claims, and gives up those that could not be renewed. */
  beat(): void {
    const now = this.#clock.monotonicNow()
    const runs = [...this.#runs.values()].filter(({ isActive }) => isActive)
    for (const run of runs) if (now >= run.aliveUntil) run.lost.abort()
    if (runs.length === 0 || this.#touching || now - this.#touchedAt < this.#timings.touchMs) return
    void this.#touch(runs)
  }

  /** False: the task is due now, and the store is to have it. */
  #defer(key: string, dueAt: number): boolean {
    const run = this.#runs.get(key)
    const later = this.#later.get(key)
    if (run !== undefined && !run.lost.signal.aborted) {
      run.putAt = earliest(run.putAt, dueAt)
      return true
    }
    const isDue = dueAt <= this.#clock.monotonicNow()
    if (!isDue && (later?.dueAt ?? Number.POSITIVE_INFINITY) <= dueAt) return true
    this.#forget(key)
    if (!isDue) this.#schedule(key, dueAt)
    return !isDue
  }

  #schedule(key: string, dueAt: number) {
    if (this.#stopping.signal.aborted) return
    const cancel = this.#clock.after(Math.ceil(dueAt - this.#clock.monotonicNow()), () => {
      this.#later.delete(key)
      void this.#putBack(key, dueAt)
    })
    this.#later.set(key, { dueAt, cancel })
  }

  #forget(key: string) {
    this.#later.get(key)?.cancel()
    this.#later.delete(key)
  }

  /** While the database is away this is tried again. */
  async #putBack(key: string, dueAt: number): Promise<void> {
    try {
      await this.put([key], dueAt - this.#clock.monotonicNow())
    } catch (error) {
      this.#deps.onFault('work cannot be put back now', { key, error: errorMessage(error) })
      await this.put([key], this.#timings.retryMs)
    }
  }

  #claimMore() {
    const isFree = this.#claiming === null && this.#active < this.#options.concurrency
    if (!isFree || !this.#mayWait || this.#stopping.signal.aborted) return
    this.#claiming = this.#claim().finally(() => {
      this.#claiming = null
      this.#claimMore()
    })
  }

  async #claim(): Promise<void> {
    const max = Math.min(this.#options.concurrency - this.#active, CLAIM_MAX)
    const since = this.#clock.monotonicNow()
    this.#mayWait = false
    try {
      const claims = await this.#deps.store.claim(max)
      if (claims.length === max) this.#mayWait = true
      for (const claim of claims) this.#begin(claim, since)
    } catch (error) {
      this.#mayWait = true
      const why = { error: errorMessage(error) }
      this.#deps.onFault('work cannot be fetched now; that is tried again', why)
      await sleep(this.#clock, this.#timings.retryMs, this.#stopping.signal)
    }
  }

  #begin(claim: Claim, since: number) {
    const before = this.#runs.get(claim.key)
    before?.lost.abort()
    this.#forget(claim.key)
    const run: Run = {
      ...{ claim, claimedAt: since, aliveUntil: since + this.#timings.aliveMs },
      ...{ lost: new AbortController(), isActive: true, putAt: null, ended: Promise.resolve() },
    }
    this.#active++
    this.#runs.set(claim.key, run)
    run.ended = this.#run(run, before?.ended)
  }

  /** A run of this process that lost the same task ends first: nothing runs twice at once. */
  async #run(run: Run, before: Promise<void> | undefined): Promise<void> {
    await before
    let dueAt: number | null
    do dueAt = await this.#handle(run)
    while (this.#mayRepeat(run, dueAt))
    run.isActive = false
    this.#active--
    this.#claimMore()
    const { key } = run.claim
    if (await this.#complete(run.claim)) {
      const isDone = dueAt === null && !run.lost.signal.aborted
      dueAt = earliest(isDone ? await this.#recheck(key) : dueAt, run.putAt)
    } else dueAt = null
    if (this.#runs.get(key) === run) this.#runs.delete(key)
    if (dueAt !== null) await this.#putBack(key, dueAt)
  }

  /** One run of the handler; gives when the task is due again. */
  async #handle(run: Run): Promise<number | null> {
    const { lost, claim } = run
    const stopping = this.#stopping.signal
    run.putAt = null
    if (this.#handler === null || stopping.aborted) return this.#clock.monotonicNow()
    const next = await this.#dueAt(claim.key, this.#handler, { stopping, lost: lost.signal })
    return earliest(next, run.putAt)
  }

  /** Its claim is kept where nothing else waits. */
  #mayRepeat({ lost, claimedAt }: Run, dueAt: number | null): boolean {
    const now = this.#clock.monotonicNow()
    const isDone = this.#stopping.signal.aborted || lost.signal.aborted || this.#mayWait
    return !isDone && dueAt !== null && dueAt <= now && now - claimedAt < REPEAT_MS
  }

  /** False: it could not be written before the stop; the claim lapses. */
  async #complete(claim: Claim): Promise<boolean> {
    for (;;) {
      try {
        await this.#completed.add([claim])
        return true
      } catch (error) {
        const why = { error: errorMessage(error) }
        this.#deps.onFault('what was done cannot be written now; that is tried again', why)
        if (this.#stopping.signal.aborted) return false
        await sleep(this.#clock, this.#timings.retryMs, this.#stopping.signal)
      }
    }
  }

  /** A put by another process is refused while the task is there: what it was for is looked for afterwards. */
  async #recheck(key: string): Promise<number | null> {
    const { recheck } = this.#options
    return recheck === undefined ? null : this.#dueAt(key, recheck)
  }

  /** By the monotonic clock; null: it is done with. */
  async #dueAt<Rest extends unknown[]>(
    key: string,
    ask: (key: string, ...rest: Rest) => Promise<Reschedule>,
    ...rest: Rest
  ): Promise<number | null> {
    try {
      const due = await ask(key, ...rest)
      return due === 'done' ? null : this.#clock.monotonicNow() + due.dueAt - this.#clock.now()
    } catch (error) {
      this.#deps.onFailure({ key, error: errorMessage(error) })
      return this.#clock.monotonicNow() + this.#timings.retryMs
    }
  }

  async #touch(runs: readonly Run[]): Promise<void> {
    const since = this.#clock.monotonicNow()
    this.#touching = true
    this.#touchedAt = since
    try {
      const held = await this.#deps.store.touch(runs.map(({ claim }) => claim))
      for (const run of runs) {
        if (held.has(run.claim.id)) run.aliveUntil = since + this.#timings.aliveMs
        else if (run.isActive) run.lost.abort()
      }
    } catch (error) {
      this.#touchedAt = Number.NEGATIVE_INFINITY
      this.#deps.onFault('work that runs cannot be kept now', { error: errorMessage(error) })
    }
    this.#touching = false
  }
}

const earliest = (a: number | null, b: number | null) =>
  a === null || b === null ? (a ?? b) : Math.min(a, b)

/** What is handed in while a batch is under way goes out as the next one: the busier, the fewer round trips. */
class TurnBatcher<T> {
  readonly #send: (batch: readonly T[]) => Promise<void>
  #waiting: T[] = []
  /** The batch after the one that is under way. */
  #next: Promise<void> | null = null
  #underWay: Promise<void> = Promise.resolve()

  constructor(send: (batch: readonly T[]) => Promise<void>) {
    this.#send = send
  }

  /** Resolves, or fails, with the batch that these are part of. */
  add(items: readonly T[]): Promise<void> {
    for (const item of items) this.#waiting.push(item)
    this.#next ??= this.#follow(this.#underWay)
    return this.#next
  }

  /** When all that was handed in so far went out, or failed. */
  async quiet(): Promise<void> {
    await this.#next?.catch(() => {})
    await this.#underWay.catch(() => {})
  }

  async #follow(before: Promise<void>): Promise<void> {
    await before.catch(() => {})
    const batch = this.#waiting
    this.#waiting = []
    this.#next = null
    this.#underWay = this.#send(batch)
    await this.#underWay
  }
}

/** The right to work on one task: `attempt` changes each time the task is claimed. */
export type Claim = { readonly key: string; readonly id: string; readonly attempt: number }

/** Tasks of one kind that are due now, shared by all processes. A call that fails may be repeated. */
export interface TaskStore {
  /** Adds tasks; a key that waits or runs already is refused without an error. */
  add(keys: readonly string[]): Promise<void>
  /** Claims tasks, those first that were added first. */
  claim(max: number): Promise<Claim[]>
  /** Removes tasks whose claim still holds. */
  complete(claims: readonly Claim[]): Promise<void>
  /** Renews claims, and gives the IDs of those that still hold. */
  touch(claims: readonly Claim[]): Promise<ReadonlySet<string>>
}
