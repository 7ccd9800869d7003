import type { Context } from 'hono'
import { breathe, type Clock } from '../../base/clock.ts'
import type { Env } from '../context.ts'
import { unlessGone } from './client-gone.ts'

/**
 * While clients connect in each turn of the event loop, one verification starts in so many ms. Node accepts one
 * connection a turn (libuv since 1.45), so a client in a crowd waits for all turns before its own: with the work of a
 * thousand verifications in each of them, a refusal took seconds.
 */
const START_EVERY_MS = 10
/** A turn that takes longer has enough work: no more starts than while clients connect. */
const TURN_MAX_MS = 10
/** The start of a verification takes a fraction of a ms, of a remembered answer less. */
const STARTS_PER_TURN = 32
/** So long after the last client of a crowd another one may be on its way: fewer start in a turn. */
const CROWD_MS = 10
const STARTS_PER_CROWDED_TURN = 2

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
  #isTurning = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Notes where a request came from: the first one of a connection may have others right behind it. */
  noteRequest(socket: object | undefined): void {
    if (socket === undefined || this.#known.has(socket)) return
    this.#known.add(socket)
    this.#hasConnected = true
    this.#connectedAt = this.#clock.ticks()
  }

  /** Resolves when the verification of a request may start. Throws `clientGone`. */
  async wait(c: Context<Env>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    if (!this.#isTurning) void this.#turn()
    try {
      await unlessGone(c, promise)
    } finally {
      this.#waiting.delete(resolve)
    }
  }

  async #turn(): Promise<void> {
    this.#isTurning = true
    while (this.#waiting.size > 0) {
      const turnedAt = this.#clock.ticks()
      await breathe()
      this.#start(this.#clock.ticks(), turnedAt)
    }
    this.#isTurning = false
  }

  #start(now: number, turnedAt: number): void {
    const starts = this.#startsNow(now, now - turnedAt)
    this.#hasConnected = false
    let started = 0
    for (const start of this.#waiting) {
      if (started++ === starts) return
      this.#startedAt = now
      this.#waiting.delete(start)
      start()
    }
  }

  #startsNow(now: number, turnMs: number): number {
    if (this.#hasConnected || turnMs > TURN_MAX_MS) {
      return now - this.#startedAt >= START_EVERY_MS ? 1 : 0
    }
    return now - this.#connectedAt < CROWD_MS ? STARTS_PER_CROWDED_TURN : STARTS_PER_TURN
  }
}
