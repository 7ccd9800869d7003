import { type Clock, yieldBatched } from './clock.ts'

/**
 * What happens to a batch that failed:
 * - `reject`: its callers get the error.
 * - `reject-all`: so do the callers whose items wait; they would wait as long for the same error.
 * - `split`: each item runs again by itself, so that one bad item fails alone.
 * - `retry`: the batch runs again after `retryMs`; what was added later waits behind it.
 * - `retry-unawaited`: the same, but nobody waits for it any longer. All callers get the error now.
 */
export type AfterFailure = 'reject' | 'reject-all' | 'split' | 'retry' | 'retry-unawaited'

export type BatcherOptions<T, R> = {
  readonly clock: Clock
  /** The largest batch; a function where it changes. */
  readonly sizeMax: number | (() => number)
  /** A batch of this size runs at once; `sizeMax` when left out. */
  readonly sizeMin?: number | (() => number)
  /** Time bound of the first item. Left out: a batch runs at the end of the event loop turn. */
  readonly waitMs?: number
  /** A batch waits for as long as each turn of the event loop brings more items. */
  readonly whileBusy?: boolean
  /** What an item counts for in `sizeMin`, `sizeMax` and `sizePending`; 1 when left out. */
  readonly sizeOf?: (item: T) => number
  /** A later item with the same key replaces one that waits, and both callers get its result. */
  readonly keyOf?: (item: T) => string
  /** Wait before a retry. */
  readonly retryMs?: number
  /**
   * Handles a batch: gives the results in the order of the items, an `Error` for an item that failed
   * by itself, or nothing where callers need no result. `attempt` counts from 1.
   */
  readonly run: (
    items: readonly T[],
    attempt: number,
  ) => Promise<[R] extends [undefined] ? void : readonly (R | Error)[]>
  /** Called when `run` rejects; `reject` when left out. */
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

/** Failures in a row after which `close` gives up. */
const CLOSE_ATTEMPTS = 2

/**
 * Collects items of many callers and handles them in batches, one batch at a time and in order. What
 * is added while a batch runs goes into the next one.
 */
export class Batcher<T, R = undefined> {
  readonly #options: BatcherOptions<T, R>
  #waiting: Entry<T, R>[] = []
  #waitingSize = 0
  readonly #byKey = new Map<string, Entry<T, R>>()
  /** Batches that run again, before what waits. */
  #again: Batch<T, R>[] = []
  #isRunning = false
  /** The time bound of the first item has passed. */
  #isDue = false
  #isTurnPlanned = false
  #cancelTimer: (() => void) | null = null
  #cancelRetry: (() => void) | null = null
  #fault: unknown = null
  #isUnawaited = false
  #isClosing = false
  /** Items added and items done with, ever. Items finish in the order in which they came. */
  #added = 0
  #done = 0
  #sizePending = 0
  #flushes: Flush[] = []
  #closeFailures = 0
  /** Items that `close` gave up. */
  #lost = 0

  constructor(options: BatcherOptions<T, R>) {
    this.#options = options
  }

  /** Resolves with the result of this item; rejects with its error. It may be left unawaited. */
  add(item: T): Promise<R> {
    const key = this.#options.keyOf?.(item)
    const same = key === undefined ? undefined : this.#byKey.get(key)
    if (same !== undefined) {
      same.item = item
      return same.promise
    }
    const size = this.#options.sizeOf?.(item) ?? 1
    const entry = { item, size, key, ...Promise.withResolvers<R>() }
    this.#push(entry)
    if (this.#isUnawaited) reject(entry, this.#fault)
    this.#schedule()
    return entry.promise
  }

  /** Items that are not done yet. */
  get pending(): number {
    return this.#added - this.#done
  }

  /** The size of these, by `sizeOf`. */
  get sizePending(): number {
    return this.#sizePending
  }

  /** Why the last batch failed, while it is to be retried; else null. */
  get fault(): unknown {
    return this.#fault
  }

  /** Resolves when all that was added until now is done. Hurries nothing, and never rejects. */
  async flushed(): Promise<void> {
    if (this.pending === 0) return
    await new Promise<void>(resolve => this.#flushes.push({ upTo: this.#added, resolve }))
  }

  /**
   * Runs all that waits without a delay. A batch that is to be retried and fails twice in a row is
   * given up, with all that waits behind it. Gives how many items were given up. What is added later
   * still runs, at once.
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
    this.#waiting.push(entry)
    if (entry.key !== undefined) this.#byKey.set(entry.key, entry)
    this.#waitingSize += entry.size
    this.#sizePending += entry.size
    this.#added++
  }

  /** Sees to it that what waits runs, now or later. */
  #schedule() {
    if (this.#waiting.length > 0 && !this.#isDue) this.#startTimer()
    if (this.#isRunning || this.#cancelRetry !== null) return
    const { sizeMax, sizeMin = sizeMax } = this.#options
    const isReady = this.#isDue || this.#isClosing || this.#waitingSize >= current(sizeMin)
    if (this.#again.length > 0 || (isReady && this.#waiting.length > 0)) void this.#runNext()
  }

  #startTimer() {
    const { clock, waitMs } = this.#options
    if (waitMs === undefined) {
      // A batch that runs is followed by another turn.
      if (!this.#isRunning) void this.#awaitTurn()
      return
    }
    this.#cancelTimer ??= clock.after(waitMs, () => this.#onDue())
  }

  async #awaitTurn(): Promise<void> {
    if (this.#isTurnPlanned) return
    this.#isTurnPlanned = true
    let before: number
    do {
      before = this.#waiting.length
      await yieldBatched()
    } while (this.#options.whileBusy && this.#waiting.length > before)
    this.#isTurnPlanned = false
    if (!this.#isRunning) this.#onDue()
  }

  #onDue() {
    this.#cancelTimer = null
    this.#isDue = this.#waiting.length > 0
    this.#schedule()
  }

  async #runNext(): Promise<void> {
    this.#isRunning = true
    const batch = this.#again.shift() ?? this.#take()
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

  /** The first items, up to `sizeMax`, or one that is larger by itself. */
  #take(): Batch<T, R> {
    const sizeMax = current(this.#options.sizeMax)
    let size = 0
    let count = 0
    for (const entry of this.#waiting) {
      if (size >= sizeMax) break
      size += entry.size
      count++
      if (entry.key !== undefined) this.#byKey.delete(entry.key)
    }
    const entries = this.#waiting.splice(0, count)
    this.#waitingSize -= size
    // What is left over has waited for as long.
    this.#isDue = this.#isDue && this.#waiting.length > 0
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
    if (isRetry) this.#again.unshift(batch)
    else if (next === 'split')
      this.#again.unshift(...entries.map(one => ({ entries: [one], attempts })))
    else this.#drop(entries, error)
    if (next === 'reject-all') this.#drop(this.#takeAll(), error)
    if (this.#isUnawaited) for (const entry of [...entries, ...this.#waiting]) reject(entry, error)
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
    const lost = this.#takeAll()
    this.#lost += lost.length
    this.#drop(lost, error)
  }

  #takeAll(): Entry<T, R>[] {
    const all = [...this.#again.flatMap(({ entries }) => entries), ...this.#waiting]
    this.#again = []
    this.#waiting = []
    this.#waitingSize = 0
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

/** A caller need not wait: an error that nobody waits for does not end the process. */
function reject<T, R>(entry: Entry<T, R>, error: unknown) {
  entry.promise.catch(() => {})
  entry.reject(error)
}
