import { type Clock, yieldToEventLoop } from '../../platform/clock.ts'

/**
 * While clients connect in every turn of the event loop, one verification starts in this many ms.
 * Node accepts one connection per turn (libuv since 1.45), so a client waits for all turns before
 * its own: with the work of a thousand verifications in each turn, a refusal took seconds.
 */
const START_EVERY_MS = 10
/**
 * For this long after a client has connected, another one may follow, so few verifications start in
 * a turn.
 */
const CONNECTING_MS = 10
const STARTS_PER_BUSY_TURN = 2
/**
 * Up to this many running verifications keep turns short: they start at once unless clients
 * connect.
 */
const RUNNING_FREE = 128
/** Starts in a turn above `RUNNING_FREE`. */
const STARTS_PER_TURN = 32
/** A longer turn has enough work: no more starts than while clients connect. */
const TURN_MAX_MS = 20

/** A request that waits for its start, or is not answered yet. */
type Entry = {
  readonly key: string
  /** Monotonic time of its arrival. */
  readonly arrivedAt: number
  /** Starts it; null once it runs or has left. */
  start: (() => void) | null
}

/**
 * Starts verification requests in their order, at a rate at which the event loop keeps up with new
 * connections. A request that waits costs nothing but its place: the app has not seen it yet.
 */
export class AdmissionQueue {
  readonly #clock: Clock
  /**
   * A `Map` would keep answered requests in memory: V8 links each table that a `Map` has outgrown to
   * the next one, so that a dead table in the old generation keeps all later ones, and what they
   * hold, until that generation is collected.
   */
  readonly #entries = new WeakMap<object, Entry>()
  /** The waiting ones in their order, and those that left while they waited. */
  readonly #queue: Entry[] = []
  #waiting = 0
  /** Number of entries by key. */
  readonly #byKey = new Map<string, number>()
  /** Sockets that have sent a request before. */
  readonly #knownSockets = new WeakSet<object>()
  #connectedAt = Number.NEGATIVE_INFINITY
  #hasConnected = false
  #startedAt = Number.NEGATIVE_INFINITY
  #running = 0
  #isDraining = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Returns how many requests with this key wait or are not answered yet. */
  countOf(key: string): number {
    return this.#byKey.get(key) ?? 0
  }

  /**
   * Records the socket of a request. The first request of a connection suggests that other
   * connections follow.
   */
  noteRequest(socket: object | undefined): void {
    if (socket === undefined || this.#knownSockets.has(socket)) return
    this.#knownSockets.add(socket)
    this.#hasConnected = true
    this.#connectedAt = this.#clock.monotonicNow()
  }

  /** Calls `start` when it is the turn of this request, unless `leave` is called before. */
  enter(request: object, key: string, start: () => void): void {
    const isFree = this.#isFree()
    const arrivedAt = this.#clock.monotonicNow()
    const entry: Entry = { key, arrivedAt, start: isFree ? null : start }
    this.#entries.set(request, entry)
    this.#byKey.set(key, this.countOf(key) + 1)
    if (isFree) {
      this.#running++
      start()
      return
    }
    this.#queue.push(entry)
    this.#waiting++
    if (!this.#isDraining) void this.#drain()
  }

  /** Removes a request: it is answered, its client has left, or it waits for other things. */
  leave(request: object): void {
    const entry = this.#entries.get(request)
    if (entry === undefined) return
    this.#entries.delete(request)
    if (entry.start === null) this.#running--
    else this.#waiting--
    entry.start = null
    const left = this.countOf(entry.key) - 1
    if (left === 0) this.#byKey.delete(entry.key)
    else this.#byKey.set(entry.key, left)
  }

  /** Returns the monotonic time at which a request arrived; null if it did not pass this queue. */
  arrivedAt(request: object | undefined): number | null {
    return (request && this.#entries.get(request)?.arrivedAt) ?? null
  }

  #isFree(): boolean {
    return this.#waiting === 0 && this.#running < RUNNING_FREE && !this.#isBusy()
  }

  #isBusy(): boolean {
    return this.#clock.monotonicNow() - this.#connectedAt < CONNECTING_MS
  }

  async #drain(): Promise<void> {
    this.#isDraining = true
    while (this.#waiting > 0) {
      const turnStartedAt = this.#clock.monotonicNow()
      await yieldToEventLoop()
      this.#start(this.#clock.monotonicNow(), turnStartedAt)
    }
    this.#isDraining = false
  }

  #start(now: number, turnStartedAt: number): void {
    const starts = this.#startsNow(now, now - turnStartedAt)
    this.#hasConnected = false
    let started = 0
    while (started < starts && this.#waiting > 0) {
      const entry = this.#queue.shift() as Entry
      const { start } = entry
      if (start === null) continue
      entry.start = null
      this.#waiting--
      this.#running++
      this.#startedAt = now
      started++
      start()
    }
    if (this.#waiting === 0) this.#queue.length = 0
  }

  #startsNow(now: number, turnMs: number): number {
    const isDue = now - this.#startedAt >= START_EVERY_MS
    if (this.#hasConnected) return isDue ? 1 : 0
    if (this.#isBusy()) return STARTS_PER_BUSY_TURN
    if (this.#running < RUNNING_FREE) return RUNNING_FREE - this.#running
    if (turnMs > TURN_MAX_MS) return isDue ? 1 : 0
    return STARTS_PER_TURN
  }
}
