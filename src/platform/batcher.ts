import { type Clock, yieldBatched } from './clock.ts'
import { withResolvers } from './es2024.ts'

/**
 * How the batcher handles a failed batch:
 * - `reject`: the batch's callers get the error.
 * - `reject-all`: callers of queued items get it too; they would wait as long for the same error.
 * - `split`: each item is retried in a batch of its own, so that one bad item fails alone.
 * - `retry`: the batch is retried after `retryMs`; items added later stay queued behind it.
 * - `retry-unawaited`: as `retry`, but all callers, queued ones included, get the error now.
 */
export type AfterFailure = 'reject' | 'reject-all' | 'split' | 'retry' | 'retry-unawaited'

export type BatcherOptions<T, R> = {
  readonly clock: Clock
  /** Largest batch size; a function if it changes over time. */
  readonly sizeMax: number | (() => number)
  /** A batch of this size runs immediately. Default: `sizeMax`. */
  readonly sizeMin?: number | (() => number)
  /** Longest wait of the first item. Default: the batch runs at the end of the event loop turn. */
  readonly waitMs?: number
  /** Delays a batch until this many turns of the event loop in a row add no item. */
  readonly quietTurns?: number
  /** Weight of an item in `sizeMin`, `sizeMax` and `sizePending`. Default: 1. */
  readonly sizeOf?: (item: T) => number
  /** A later item with the same key replaces a queued one, and both callers get its result. */
  readonly keyOf?: (item: T) => string
  /** Wait before a retry. */
  readonly retryMs?: number
  /**
   * Processes a batch. Returns the results in the order of the items, with an `Error` for an item
   * that failed alone, or nothing if callers need no result. `attempt` counts from 1.
   */
  readonly run: (
    items: readonly T[],
    attempt: number,
  ) => Promise<[R] extends [undefined] ? void : readonly (R | Error)[]>
  /** Called when `run` rejects. Default: `reject`. */
  readonly onFailure?: (error: unknown, items: readonly T[], attempt: number) => AfterFailure
}

type Entry<T, R> = {
  item: T
  readonly size: number
  readonly key: string | undefined
  readonly promise: Promise<R>
  readonly resolve: (result: R) => void
  readonly reject: (error: unknown) => void
}

type Flush = { readonly upTo: number; readonly resolve: () => void }

type Batch<T, R> = { readonly entries: readonly Entry<T, R>[]; attempts: number }

/** Consecutive failures after which `close` gives up. */
const CLOSE_ATTEMPTS = 2

/**
 * Collects items of many callers and processes them in batches, one batch at a time and in order.
 * Items added while a batch runs go into the next one.
 */
export class Batcher<T, R = undefined> {
  readonly #options: BatcherOptions<T, R>
  #queue: Entry<T, R>[] = []
  #queueSize = 0
  readonly #byKey = new Map<string, Entry<T, R>>()
  /** Batches to retry before the queued items. */
  #retries: Batch<T, R>[] = []
  #isRunning = false
  /** Whether the first item has waited `waitMs`. */
  #isDue = false
  #isTurnPlanned = false
  #cancelTimer: (() => void) | null = null
  #cancelRetry: (() => void) | null = null
  #fault: unknown = null
  #isUnawaited = false
  #isClosing = false
  /** Totals over the batcher's lifetime. Items finish in the order in which they were added. */
  #added = 0
  #done = 0
  #sizePending = 0
  #flushes: Flush[] = []
  #closeFailures = 0
  /** Items dropped by `close`. */
  #lost = 0

  constructor(options: BatcherOptions<T, R>) {
    this.#options = options
  }

  /** Resolves with the item's result or rejects with its error. The promise may be ignored. */
  add(item: T): Promise<R> {
    const key = this.#options.keyOf?.(item)
    const same = key === undefined ? undefined : this.#byKey.get(key)
    if (same !== undefined) {
      same.item = item
      return same.promise
    }
    const size = this.#options.sizeOf?.(item) ?? 1
    const { promise, resolve, reject: rejectResult } = withResolvers<R>()
    const entry: Entry<T, R> = { item, size, key, promise, resolve, reject: rejectResult }
    this.#push(entry)
    if (this.#isUnawaited) reject(entry, this.#fault)
    this.#schedule()
    return entry.promise
  }

  /** Number of items that are not finished. */
  get pending(): number {
    return this.#added - this.#done
  }

  /** Total size of the pending items, by `sizeOf`. */
  get sizePending(): number {
    return this.#sizePending
  }

  /** Error of the last batch while its retry is pending; otherwise null. */
  get fault(): unknown {
    return this.#fault
  }

  /** Resolves when all items added so far are finished. Starts no batch early and never rejects. */
  async flushed(): Promise<void> {
    if (this.pending === 0) return
    await new Promise<void>(resolve => this.#flushes.push({ upTo: this.#added, resolve }))
  }

  /**
   * Runs all queued items without delay. A retried batch that fails twice in a row is dropped
   * together with the items queued behind it. Returns how many items were dropped. Items added
   * later still run, without delay.
   */
  async close(): Promise<number> {
    this.#isClosing = true
    this.#cancelRetry?.()
    this.#cancelRetry = null
    this.#schedule()
    await this.flushed()
    return this.#lost
  }

  #push(entry: Entry<T, R>) {
    this.#queue.push(entry)
    if (entry.key !== undefined) this.#byKey.set(entry.key, entry)
    this.#queueSize += entry.size
    this.#sizePending += entry.size
    this.#added++
  }

  /** Starts the next batch if it is ready, otherwise its timer. */
  #schedule() {
    if (this.#queue.length > 0 && !this.#isDue) this.#startTimer()
    if (this.#isRunning || this.#cancelRetry !== null) return
    const { sizeMax, sizeMin = sizeMax } = this.#options
    const isReady = this.#isDue || this.#isClosing || this.#queueSize >= current(sizeMin)
    if (this.#retries.length > 0 || (isReady && this.#queue.length > 0)) void this.#runNext()
  }

  #startTimer() {
    const { clock, waitMs } = this.#options
    if (waitMs === undefined) {
      // A running batch schedules the next one when it ends.
      if (!this.#isRunning) void this.#awaitTurn()
      return
    }
    this.#cancelTimer ??= clock.after(waitMs, () => this.#onDue())
  }

  async #awaitTurn(): Promise<void> {
    if (this.#isTurnPlanned) return
    this.#isTurnPlanned = true
    const { quietTurns = 0 } = this.#options
    let quiet = 0
    do {
      const before = this.#queue.length
      await yieldBatched()
      quiet = this.#queue.length > before ? 0 : quiet + 1
    } while (quiet < quietTurns)
    this.#isTurnPlanned = false
    if (!this.#isRunning) this.#onDue()
  }

  #onDue() {
    this.#cancelTimer = null
    this.#isDue = this.#queue.length > 0
    this.#schedule()
  }

  async #runNext(): Promise<void> {
    this.#isRunning = true
    const batch = this.#retries.shift() ?? this.#dequeue()
    const items = batch.entries.map(({ item }) => item)
    batch.attempts++
    try {
      const results = await this.#options.run(items, batch.attempts)
      this.#succeed(batch, results as readonly (R | Error)[] | undefined)
    } catch (error) {
      this.#fail(batch, error)
    }
    this.#isRunning = false
    this.#schedule()
  }

  /** Dequeues the first items, up to `sizeMax`, or a single item that is larger. */
  #dequeue(): Batch<T, R> {
    const sizeMax = current(this.#options.sizeMax)
    let size = 0
    let count = 0
    for (const entry of this.#queue) {
      if (size >= sizeMax) break
      size += entry.size
      count++
      if (entry.key !== undefined) this.#byKey.delete(entry.key)
    }
    const entries = this.#queue.splice(0, count)
    this.#queueSize -= size
    // The remaining items have waited for as long.
    this.#isDue = this.#isDue && this.#queue.length > 0
    if (!this.#isDue) this.#cancelTimer?.()
    if (!this.#isDue) this.#cancelTimer = null
    return { entries, attempts: 0 }
  }

  #succeed({ entries }: Batch<T, R>, results: readonly (R | Error)[] | undefined) {
    this.#fault = null
    this.#isUnawaited = false
    this.#closeFailures = 0
    let n = 0
    for (const entry of entries) {
      const result = results?.[n++]
      if (result instanceof Error) reject(entry, result)
      else entry.resolve(result as R)
    }
    this.#finish(entries)
  }

  #fail(batch: Batch<T, R>, error: unknown) {
    const { entries, attempts } = batch
    const items = entries.map(({ item }) => item)
    const next = this.#options.onFailure?.(error, items, attempts) ?? 'reject'
    const isRetry = next === 'retry' || next === 'retry-unawaited'
    this.#fault = isRetry ? error : null
    this.#isUnawaited = next === 'retry-unawaited'
    if (isRetry) this.#retries.unshift(batch)
    else if (next === 'split')
      this.#retries.unshift(...entries.map(one => ({ entries: [one], attempts })))
    else this.#drop(entries, error)
    if (next === 'reject-all') this.#drop(this.#dequeueAll(), error)
    if (this.#isUnawaited) for (const entry of [...entries, ...this.#queue]) reject(entry, error)
    if (isRetry) this.#retryLater(error)
  }

  #retryLater(error: unknown) {
    const { clock, retryMs = 0 } = this.#options
    if (!this.#isClosing) {
      this.#cancelRetry = clock.after(retryMs, () => {
        this.#cancelRetry = null
        this.#schedule()
      })
      return
    }
    this.#closeFailures++
    if (this.#closeFailures < CLOSE_ATTEMPTS) return
    const lost = this.#dequeueAll()
    this.#lost += lost.length
    this.#drop(lost, error)
  }

  #dequeueAll(): Entry<T, R>[] {
    const all = [...this.#retries.flatMap(({ entries }) => entries), ...this.#queue]
    this.#retries = []
    this.#queue = []
    this.#queueSize = 0
    this.#byKey.clear()
    return all
  }

  #drop(entries: readonly Entry<T, R>[], error: unknown) {
    for (const entry of entries) reject(entry, error)
    this.#finish(entries)
  }

  #finish(entries: readonly Entry<T, R>[]) {
    this.#done += entries.length
    for (const { size } of entries) this.#sizePending -= size
    if (this.#flushes.length === 0) return
    const isDone = ({ upTo }: Flush) => upTo <= this.#done
    for (const { resolve } of this.#flushes.filter(isDone)) resolve()
    this.#flushes = this.#flushes.filter(flush => !isDone(flush))
  }
}

const current = (size: number | (() => number)): number =>
  typeof size === 'function' ? size() : size

/** Rejects the promise; one that is not awaited must not end the process. */
function reject<T, R>(entry: Entry<T, R>, error: unknown) {
  entry.promise.catch(() => {})
  entry.reject(error)
}
