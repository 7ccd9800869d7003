import type { Context } from 'hono'
import { type Clock, yieldToEventLoop } from '../../platform/clock.ts'
import type { Env } from '../context.ts'
import { unlessAborted } from './client-aborted.ts'

/**
 * While clients connect in each turn of the event loop, one verification starts in so many ms. Node accepts one
 * connection a turn (libuv since 1.45), so a client in a crowd waits for all turns before its own: with the work of a
 * thousand verifications in each of them, a refusal took seconds.
 */
const START_EVERY_MS = 10
/** So long after the last client that connected another one may be on its way: few start in a turn. */
const CROWD_MS = 10
const STARTS_PER_CROWDED_TURN = 2
/** So many run at a time before turns get long: without a crowd they start at once. */
const RUNNING_FREE = 64
/** Above those, so many start in a turn. */
const STARTS_PER_TURN = 32
/** A turn that takes longer has enough work: no more starts than while clients connect. */
const TURN_MAX_MS = 20

/** Starts verifications in the order of their requests, as fast as the event loop keeps up with clients that connect. */
export class AdmissionQueue {
  readonly #clock: Clock
  /** A Set keeps the order, and gives up an entry whose client has left. */
  readonly #waiting = new Set<() => void>()
  /** Sockets that brought a request. */
  readonly #known = new WeakSet<object>()
  #connectedAt = Number.NEGATIVE_INFINITY
  #hasConnected = false
  #startedAt = Number.NEGATIVE_INFINITY
  #running = 0
  #isRotating = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Notes where a request came from: the first one of a connection may have others right behind it. */
  noteRequest(socket: object | undefined): void {
    if (socket === undefined || this.#known.has(socket)) return
    this.#known.add(socket)
    this.#hasConnected = true
    this.#connectedAt = this.#clock.monotonicNow()
  }

  /** Asks mail servers for a request when that may start. Throws `clientGone` when its client leaves before. */
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
    return this.#clock.monotonicNow() - this.#connectedAt < CROWD_MS
  }

  async #wait(c: Context<Env>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    if (!this.#isRotating) void this.#turn()
    try {
      await unlessAborted(c, promise)
    } catch (error) {
      // It was started in the same moment.
      if (!this.#waiting.delete(resolve)) this.#running--
      throw error
    }
  }

  async #turn(): Promise<void> {
    this.#isRotating = true
    while (this.#waiting.size > 0) {
      const rotatedAt = this.#clock.monotonicNow()
      await yieldToEventLoop()
      this.#start(this.#clock.monotonicNow(), rotatedAt)
    }
    this.#isRotating = false
  }

  #start(now: number, rotatedAt: number): void {
    const starts = this.#startsNow(now, now - rotatedAt)
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

  #startsNow(now: number, rotationMs: number): number {
    const isDue = now - this.#startedAt >= START_EVERY_MS
    if (this.#hasConnected) return isDue ? 1 : 0
    if (this.#isBusy()) return STARTS_PER_CROWDED_TURN
    if (this.#running < RUNNING_FREE) return RUNNING_FREE - this.#running
    if (rotationMs > TURN_MAX_MS) return isDue ? 1 : 0
    return STARTS_PER_TURN
  }
}
