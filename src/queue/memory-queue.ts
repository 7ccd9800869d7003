import type { Clock } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, LogThrottle } from '../platform/log.ts'
import {
  DEFAULT_QUEUE_TIMINGS,
  type Handler,
  type Queue,
  type QueueTimings,
  type Reschedule,
  type Worker,
  type WorkOptions,
} from './queue.ts'
import { QUEUE_LOG } from './telemetry.ts'

/**
 * Creates the queue of a single process. It has no state that cannot be rebuilt from the database
 * at the next start.
 */
export function createMemoryQueue(
  clock: Clock,
  log: Log,
  timings: Pick<QueueTimings, 'retryMs'> = DEFAULT_QUEUE_TIMINGS,
): Queue {
  const kinds = new Map<string, Kind>()
  const kindOf = (name: string) => {
    const kind = kinds.get(name) ?? new Kind(clock, log, timings.retryMs)
    kinds.set(name, kind)
    return kind
  }
  return {
    put: async (kind, key, dueAt = clock.now()) => kindOf(kind).put(key, dueAt),
    async putAll(kind, keys, dueAt = clock.now()) {
      for (const key of keys) kindOf(kind).put(key, dueAt)
    },
    work: (kind, handler, options) => kindOf(kind).work(handler, options),
    close: async () => {
      await Promise.all([...kinds.values()].map(kind => kind.stop()))
    },
  }
}

type Entry = {
  readonly key: string
  dueAt: number
  running: boolean
  /** Due time of a put while the task was running. */
  retryAt: number | null
  cancelTimer: (() => void) | null
}

/** All failures of a kind count as one. */
const FAILURE = 'failure'

class Kind {
  readonly #clock: Clock
  readonly #log: Log
  readonly #throttle: LogThrottle
  readonly #retryMs: number
  readonly #entries = new Map<string, Entry>()
  readonly #stopping = new AbortController()
  /** The lease of every run; one in memory is never lost. */
  readonly #lease = { stopping: this.#stopping.signal, lost: new AbortController().signal }
  /** Due tasks, first come first served. */
  #ready: Entry[] = []
  #next = 0
  #running = 0
  #handler: Handler | null = null
  #options: WorkOptions = { concurrency: 0 }
  #idle: (() => void)[] = []

  constructor(clock: Clock, log: Log, retryMs: number) {
    this.#clock = clock
    this.#log = log
    this.#throttle = new LogThrottle(clock)
    this.#retryMs = retryMs
  }

  put(key: string, dueAt: number): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) {
      const created = { key, dueAt, running: false, retryAt: null, cancelTimer: null }
      this.#entries.set(key, created)
      this.#schedule(created, dueAt)
    } else if (entry.running) entry.retryAt = Math.min(entry.retryAt ?? dueAt, dueAt)
    else if (entry.cancelTimer !== null && this.#isSooner(dueAt, entry)) {
      this.#schedule(entry, dueAt)
    }
  }

  /**
   * A task that is due now runs now: timers may be late by the wall clock after the machine slept.
   */
  #isSooner(dueAt: number, entry: Entry): boolean {
    return dueAt < entry.dueAt || dueAt <= this.#clock.now()
  }

  work(handler: Handler, options: WorkOptions): Worker {
    this.#handler = handler
    this.#options = options
    this.#pump()
    return { stop: () => this.stop() }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    for (const entry of this.#entries.values()) entry.cancelTimer?.()
    if (this.#running > 0) await new Promise<void>(resolve => this.#idle.push(resolve))
  }

  #schedule(entry: Entry, dueAt: number) {
    entry.cancelTimer?.()
    entry.cancelTimer = null
    entry.dueAt = dueAt
    // A task put after the stop never runs; a timer for it would keep the process alive.
    if (this.#stopping.signal.aborted) return
    const waitMs = dueAt - this.#clock.now()
    if (waitMs > 0) {
      // A timer measures elapsed time, so jumps of the wall clock do no harm.
      entry.cancelTimer = this.#clock.after(waitMs, () => {
        entry.cancelTimer = null
        this.#makeReady(entry)
      })
    } else this.#makeReady(entry)
  }

  #makeReady(entry: Entry) {
    this.#ready.push(entry)
    this.#pump()
  }

  #pump() {
    while (
      this.#handler !== null &&
      this.#next < this.#ready.length &&
      this.#running < this.#options.concurrency &&
      !this.#stopping.signal.aborted
    ) {
      const entry = this.#ready[this.#next++] as Entry
      // Drops processed tasks in blocks, so that dequeuing stays O(1).
      if (this.#next > 1_024) this.#ready = this.#ready.slice(this.#next)
      if (this.#next > 1_024) this.#next = 0
      void this.#run(this.#handler, entry)
    }
  }

  async #run(handler: Handler, entry: Entry): Promise<void> {
    entry.running = true
    this.#running++
    let next: Reschedule
    try {
      next = await handler(entry.key, this.#lease)
    } catch (error) {
      // If the disk is full, all tasks fail alike.
      const fields = { key: entry.key, error: errorMessage(error) }
      this.#throttle.write(this.#log, FAILURE, QUEUE_LOG.taskRetried, fields)
      next = { dueAt: this.#clock.now() + this.#retryMs }
    }
    entry.running = false
    this.#running--
    this.#requeue(entry, next)
    this.#pump()
    if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  #requeue(entry: Entry, next: Reschedule) {
    const times = [next === 'done' ? null : next.dueAt, entry.retryAt].filter(at => at !== null)
    entry.retryAt = null
    if (times.length === 0) this.#entries.delete(entry.key)
    else this.#schedule(entry, Math.min(...times))
  }
}
