import type { Context } from 'hono'
import { type Clock, yieldToEventLoop } from '../../platform/clock.ts'
import type { Env } from '../context.ts'
import { unlessAborted } from '../context.ts'

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
const RUNNING_FREE = 64
/** Starts in a turn above `RUNNING_FREE`. */
const STARTS_PER_TURN = 32
/** A longer turn has enough work: no more starts than while clients connect. */
const TURN_MAX_MS = 20

/**
 * Starts verifications in the order of their requests, at a rate at which the event loop keeps up
 * with new connections.
 */
export class AdmissionQueue {
  readonly #clock: Clock
  /** A Set keeps the order, and an entry is removed when its client leaves. */
  readonly #waiting = new Set<() => void>()
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

  /**
   * Runs `verify` once the request is admitted. Throws `clientAborted` if its client leaves before.
   */
  async run<T>(c: Context<Env>, verify: () => Promise<T>): Promise<T> {
    if (this.#isFree()) this.#running++
    else await this.#wait(c)
    try {
      return await verify()
    } finally {
      this.#running--
    }
  }

  #isFree(): boolean {
    return this.#waiting.size === 0 && this.#running < RUNNING_FREE && !this.#isBusy()
  }

  #isBusy(): boolean {
    return this.#clock.monotonicNow() - this.#connectedAt < CONNECTING_MS
  }

  async #wait(c: Context<Env>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    if (!this.#isDraining) void this.#drain()
    try {
      await unlessAborted(c, promise)
    } catch (error) {
      // The entry was started in the same moment.
      if (!this.#waiting.delete(resolve)) this.#running--
      throw error
    }
  }

  async #drain(): Promise<void> {
    this.#isDraining = true
    while (this.#waiting.size > 0) {
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
    for (const start of this.#waiting) {
      if (started++ === starts) return
      this.#startedAt = now
      this.#running++
      this.#waiting.delete(start)
      start()
    }
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
