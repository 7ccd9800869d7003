import { performance } from 'node:perf_hooks'
import { type Clock, SECOND, sleep, yieldToEventLoop } from './clock.ts'

/** Kinds of background work. They are started round-robin. */
export type BackgroundWork = 'import' | 'route' | 'probe'

/** Time that the event loop ran callbacks and waited for events, ms since the process started. */
export type LoopTimes = { readonly active: number; readonly idle: number }

/** Number of rows in a unit of work. They take about 3 ms. */
const UNIT_ROWS = 25
/** With requests, a unit starts once the loop was idle for this share since the last one. */
const IDLE_SHARE = 0.5
/** A connection takes as much work as this many rows. */
const CONNECTION_ROWS = 12
/** Without requests, this many probes may be in flight at any load: about 50 ms of work in all. */
const PROBES_MIN = 8
/** More probes help only while the event loop waits for mail servers for this share of the time. */
const IDLE_SHARE_OF_PROBES = 0.05
/** A request that is in flight for longer waits for a mail server. */
const REQUEST_BUSY_MS = 30
/** Longest wait under constant load, so that at least 33 units start per second. */
const WAIT_MAX_MS = 30
/** Poll interval of the idle check. A timer of Node cannot be shorter than 1 ms. */
const POLL_MS = 1
/** After the last request more may follow: a sequential client leaves gaps of this length. */
const QUIET_MS = SECOND
/** An import stores its next rows within this time. */
const IMPORT_QUIET_MS = SECOND / 10

/** Work that waits, and the number of its rows. */
type Waiting = { readonly rows: number; readonly start: () => void }

/**
 * Gives requests priority over background work. One event loop runs both: a request takes some
 * twenty turns of it and waits in each turn for all other work. Without requests, or while the loop
 * is mostly idle, background work is not slowed down.
 */
export class Priority {
  readonly #clock: Clock
  readonly #loopTimes: () => LoopTimes
  #requests = 0
  #requestStartedAt = Number.NEGATIVE_INFINITY
  #requestEndedAt = Number.NEGATIVE_INFINITY
  #lastImportAt = Number.NEGATIVE_INFINITY
  #probes = 0
  readonly #waiting = new Map<BackgroundWork, Waiting[]>()
  #isStarting = false
  #isStopped = false
  #startedAt = Number.NEGATIVE_INFINITY
  #timesAtStart: LoopTimes

  /** `clock` must be the real clock of the event loop. */
  constructor(clock: Clock, loopTimes: () => LoopTimes = () => performance.eventLoopUtilization()) {
    this.#clock = clock
    this.#loopTimes = loopTimes
    this.#timesAtStart = loopTimes()
  }

  /** Registers the start of a request; call the returned function once when it ends. */
  startRequest(): () => void {
    this.#requests++
    this.#requestStartedAt = this.#clock.monotonicNow()
    return () => {
      this.#requests--
      this.#requestEndedAt = this.#clock.monotonicNow()
    }
  }

  /** Whether requests are in flight, or were within the last second. */
  get hasRequests(): boolean {
    return this.#requests > 0 || this.#clock.monotonicNow() - this.#requestEndedAt < QUIET_MS
  }

  /** Whether a request in flight may need the event loop now. */
  get #hasBusyRequest(): boolean {
    const sinceMs = this.#clock.monotonicNow() - this.#requestStartedAt
    return this.#requests > 0 && sinceMs < REQUEST_BUSY_MS
  }

  /** Whether a client waits for a request or an import. */
  get #isUrgent(): boolean {
    return this.hasRequests || this.#clock.monotonicNow() - this.#lastImportAt < IMPORT_QUIET_MS
  }

  /**
   * Resolves when background work on `rows` rows may start, at the earliest in the next turn of the
   * event loop. Work with few rows is started together, so that many short lists do not delay a
   * long one. A client waits for an import too, so imports go before the other kinds.
   */
  async yieldToRequests(
    work: Exclude<BackgroundWork, 'probe'>,
    rows: number = UNIT_ROWS,
  ): Promise<void> {
    if (work === 'import') this.#lastImportAt = this.#clock.monotonicNow()
    const isFirst = !this.hasRequests && (work === 'import' || !this.#isUrgent)
    return isFirst ? yieldToEventLoop() : this.#wait(work, rows)
  }

  /** As `yieldToRequests` for a probe in flight; call the returned function once when it ends. */
  async startProbe(rows: number): Promise<() => void> {
    await this.#wait('probe', rows + CONNECTION_ROWS)
    return () => {
      this.#probes--
    }
  }

  /** Starts all waiting work without delay, so that it can end. */
  stop(): void {
    this.#isStopped = true
  }

  #wait(work: BackgroundWork, rows: number): Promise<void> {
    const queue = this.#waiting.get(work) ?? []
    this.#waiting.set(work, queue)
    const started = new Promise<void>(start => queue.push({ rows, start }))
    if (!this.#isStarting) void this.#startAll()
    return started
  }

  /** Starts the waiting work, unit by unit. */
  async #startAll(): Promise<void> {
    this.#isStarting = true
    while (this.#waiting.size > 0) {
      await this.#idle()
      this.#startedAt = this.#clock.monotonicNow()
      this.#timesAtStart = this.#loopTimes()
      this.#startUnit()
    }
    this.#isStarting = false
  }

  async #idle(): Promise<void> {
    if (!this.#isUrgent && this.#probes < PROBES_MIN) return
    await yieldToEventLoop()
    while (!this.#isIdle()) await sleep(this.#clock, POLL_MS)
  }

  #isIdle(): boolean {
    if (this.#isStopped || this.#clock.monotonicNow() - this.#startedAt >= WAIT_MAX_MS) return true
    if (!this.#isUrgent && this.#probes < PROBES_MIN) return true
    if (this.#hasBusyRequest) return false
    const { active, idle } = this.#loopTimes()
    const idleMs = idle - this.#timesAtStart.idle
    const share = this.#isUrgent ? IDLE_SHARE : IDLE_SHARE_OF_PROBES
    return idleMs > 0 && idleMs >= share * (idleMs + active - this.#timesAtStart.active)
  }

  /** Starts work of the kind that was served least recently. */
  #startUnit(): void {
    const [first] = this.#waiting
    if (first === undefined) return
    const [work, queue] = first
    this.#waiting.delete(work)
    for (let rows = 0; rows < UNIT_ROWS; ) {
      const next = queue.shift()
      if (next === undefined) break
      if (work === 'probe') this.#probes++
      next.start()
      rows += next.rows
    }
    // Reinserting moves this kind behind the others.
    if (queue.length > 0) this.#waiting.set(work, queue)
  }
}
