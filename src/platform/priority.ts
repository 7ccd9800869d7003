import { performance } from 'node:perf_hooks'
import { type Clock, SECOND, sleep, yieldToEventLoop } from './clock.ts'

/** The kinds of background work, which take turns. */
export type BackgroundWork = 'import' | 'route' | 'probe'

/** How long the event loop ran callbacks and how long it waited for events, in ms since the process started. */
export type LoopTimes = { readonly active: number; readonly idle: number }

/** Between requests, a piece starts once the event loop was idle for this share of the time since the last one. */
const IDLE_SHARE = 0.5
/** Without requests, this many probes are in flight in any case. Together they have some 50 ms of work left. */
const PROBES_MIN = 8
/** More probes only make sense as long as the event loop waits for mail servers for this share of the time. */
const IDLE_SHARE_OF_PROBES = 0.05
/** Under constant load a piece starts this long after the last one all the same: 33 pieces a second go on. */
const WAIT_MAX_MS = 30
/** How often it is looked whether the event loop is idle. A timer of Node cannot be shorter than 1 ms. */
const POLL_MS = 1
/** After the last request, more may follow: a client that sends one after another has gaps of this length. */
const QUIET_MS = SECOND
/** An import stores its next rows sooner than that. */
const IMPORT_QUIET_MS = SECOND / 10

/**
 * Lets background work give way to requests that somebody waits for. One event loop runs both: a request takes some
 * twenty turns of it, and waits in each of them for all other work of that turn. Without requests, and on a loop that is
 * mostly idle, background work is not slowed down.
 */
export class Priority {
  readonly #clock: Clock
  readonly #loopTimes: () => LoopTimes
  #requests = 0
  #lastRequestAt = Number.NEGATIVE_INFINITY
  #lastImportAt = Number.NEGATIVE_INFINITY
  #probes = 0
  readonly #waiting = new Map<BackgroundWork, (() => void)[]>()
  #isStarting = false
  #isStopped = false
  #startedAt = Number.NEGATIVE_INFINITY
  #timesAtStart: LoopTimes

  /** `clock` has the time in which the event loop runs. */
  constructor(clock: Clock, loopTimes: () => LoopTimes = () => performance.eventLoopUtilization()) {
    this.#clock = clock
    this.#loopTimes = loopTimes
    this.#timesAtStart = loopTimes()
  }

  /** Notes that a request starts that somebody waits for; call the returned function once when it ends. */
  startRequest(): () => void {
    this.#requests++
    return () => {
      this.#requests--
      this.#lastRequestAt = this.#clock.monotonicNow()
    }
  }

  /** Whether requests are in flight, or were a moment ago. */
  get hasRequests(): boolean {
    return this.#requests > 0 || this.#clock.monotonicNow() - this.#lastRequestAt < QUIET_MS
  }

  /** Whether somebody waits for a request or an import. */
  get #isUrgent(): boolean {
    return this.hasRequests || this.#clock.monotonicNow() - this.#lastImportAt < IMPORT_QUIET_MS
  }

  /**
   * Resolves when the next piece of background work may start, at the earliest in the next turn of the event loop. The
   * kinds take turns, so that a short list is not held up by the connections of a long one. Somebody waits for an
   * import, too: the others give way to it.
   */
  async yieldToRequests(work: Exclude<BackgroundWork, 'probe'>): Promise<void> {
    if (work === 'import') this.#lastImportAt = this.#clock.monotonicNow()
    const isFirst = !this.hasRequests && (work === 'import' || !this.#isUrgent)
    return isFirst ? yieldToEventLoop() : this.#wait(work)
  }

  /** The same for a probe, which stays in flight; call the returned function once when it ends. */
  async startProbe(): Promise<() => void> {
    await this.#wait('probe')
    return () => {
      this.#probes--
    }
  }

  /** From now on nothing waits: background work is to end. */
  stop(): void {
    this.#isStopped = true
  }

  #wait(work: BackgroundWork): Promise<void> {
    const line = this.#waiting.get(work) ?? []
    this.#waiting.set(work, line)
    const started = new Promise<void>(resolve => line.push(resolve))
    if (!this.#isStarting) void this.#startAll()
    return started
  }

  /** Starts what waits, one piece after another. */
  async #startAll(): Promise<void> {
    this.#isStarting = true
    while (this.#waiting.size > 0) {
      await this.#idle()
      this.#startedAt = this.#clock.monotonicNow()
      this.#timesAtStart = this.#loopTimes()
      this.#startNext()
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
    if (this.#requests > 0) return false
    const { active, idle } = this.#loopTimes()
    const idleMs = idle - this.#timesAtStart.idle
    const share = this.#isUrgent ? IDLE_SHARE : IDLE_SHARE_OF_PROBES
    return idleMs > 0 && idleMs >= share * (idleMs + active - this.#timesAtStart.active)
  }

  /** The first one of the kind whose turn is longest ago. */
  #startNext(): void {
    const [first] = this.#waiting
    if (first === undefined) return
    const [work, line] = first
    this.#waiting.delete(work)
    if (work === 'probe') this.#probes++
    line.shift()?.()
    // Behind the others.
    if (line.length > 0) this.#waiting.set(work, line)
  }
}
