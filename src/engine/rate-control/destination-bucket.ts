import { type Clock, SECOND } from '../../platform/clock.ts'
import type { RateController } from './controller.ts'
import type { DestinationLimit } from './limit-table.ts'
import {
  type AcquireResult,
  acquireBoth,
  FULL_POLL_MS,
  type NotNow,
  PermitQueue,
  type PermitSource,
} from './permit-queue.ts'
import { CEILING_MS, dueAt, PAUSE_MAX_MS, PAUSE_MIN_MS } from './rules.ts'

/** A request for one connection, and how it may wait. */
export type LimitRequest = {
  /** Requests with the same key share one due time. */
  readonly key: string
  /** True if a caller waits for the answer. */
  readonly single: boolean
  readonly signal: AbortSignal
  /** The longest pause to wait out, in ms. */
  readonly timeoutMs: number
  /** Whether the request can be retried later; if not, it waits here until `signal` aborts. */
  readonly isReturnable: boolean
}

/** `retryInMs`: other requests come first; retry after this time. */
export type LimitStart = AcquireResult | { readonly retryInMs: number }

/** The limits and the sharing of all addresses, or of all networks. */
export type DestinationKind = {
  readonly clock: Clock
  readonly limit: DestinationLimit
  /** Opens the state that all processes share; null if there is only one process. */
  readonly openShared: ((key: string) => RateController) | null
  /** The number of different users from which on the state is shared. */
  readonly sharedFromUsers: number
  /** Whether a user counts permanently, or only while it holds a connection. */
  readonly keepsUsers: boolean
}

/**
 * The longest wait here of a request that can be retried later. A longer one would keep the
 * connection slot from other work; a shorter one would defer each row of a busy address several
 * times.
 */
const WAIT_HERE_MAX_MS = 2 * SECOND
/** How many such requests wait here per connection: each release wakes all of them. */
const WAITERS_PER_SESSION = 2
/** The most due times in memory: as many as a stream has routed addresses; about 100 bytes each. */
const DUE_TIMES_MAX = 10_000
/** The weight of the last connection in the moving average of the hold time. */
const HOLD_TIME_WEIGHT = 1 / 8

/**
 * Limits concurrent connections to an IP address or a network, and new ones per second, over all
 * operators and egresses: a token bucket with a pause after throttling. The adaptive limits belong to
 * operators. It always counts in this process; processes share a state as soon as it has
 * `sharedFromUsers` users, so that a destination with a single user causes no database load.
 */
export class DestinationBucket implements PermitSource {
  readonly #kind: DestinationKind
  readonly #key: string
  readonly #queue: PermitQueue
  #sessions = 0
  /** When the rate allows the next connection, monotonic ms. */
  #nextStartAt = Number.NEGATIVE_INFINITY
  #pausedUntil = Number.NEGATIVE_INFINITY
  #pauseMs = PAUSE_MIN_MS
  /** The most connections that may be open at once until `#ceilingUntil`. */
  #sessionsCeiling = Number.POSITIVE_INFINITY
  #ceilingUntil = Number.NEGATIVE_INFINITY
  /** The state shared with other processes; null until there are enough users. */
  #shared: RateController | null = null
  /** The distinct users, counted until the state is shared. */
  #users: Set<string> | null = null
  /** The due times of requests without a permit, by key, monotonic ms. */
  #dueTimes: Map<string, number> | null = null
  /** The due time of the next new request, monotonic ms. */
  #nextDueAt = Number.NEGATIVE_INFINITY
  #waiterCount = 0
  #meanHoldMs = 0
  #isThrottled = false

  constructor(kind: DestinationKind, key: string) {
    this.#kind = kind
    this.#key = key
    this.#queue = new PermitQueue(kind.clock, this)
  }

  /**
   * Returns a permit, or why there is none, at once if the state of this process decides it, else a
   * promise. `user` is the requester: an operator, or an address of the network.
   */
  start(user: string, request: LimitRequest): LimitStart | Promise<LimitStart> {
    this.#countUser(user)
    const { key, single, signal, isReturnable } = request
    // The state decides about most requests without a wait.
    if (this.#shared === null && this.notNow(single) === null) {
      if (isReturnable && this.#dueTimes?.delete(key) !== true) this.#nextDueIn()
      return this.#countWhileHeld(user, this.acquire(signal, single))
    }
    return isReturnable
      ? this.#startOrReturn(user, request)
      : this.#waitForAll(user, request, Number.POSITIVE_INFINITY)
  }

  async #startOrReturn(user: string, request: LimitRequest): Promise<LimitStart> {
    const { key, signal } = request
    const hasRoom = this.#waiterCount < this.#kind.limit.sessionsMax * WAITERS_PER_SESSION
    const waitsHere = this.#retryInMs(key) <= WAIT_HERE_MAX_MS && hasRoom
    this.#waiterCount++
    const acquired = await this.#waitForAll(
      user,
      request,
      waitsHere ? WAIT_HERE_MAX_MS : 0,
    ).finally(() => {
      this.#waiterCount--
    })
    const mustRetryLater = 'waitMs' in acquired && !acquired.paused && !signal.aborted
    if (waitsHere || !mustRetryLater) this.#dueTimes?.delete(key)
    return mustRetryLater
      ? { retryInMs: Math.max(acquired.waitMs, this.#retryInMs(key)) }
      : acquired
  }

  /** Waits for the permit of this process, then for that of all processes, if they share a state. */
  async #waitForAll(
    user: string,
    { signal, single, timeoutMs }: LimitRequest,
    waitMaxMs: number,
  ): Promise<AcquireResult> {
    const own = await this.#queue.start({ signal, single, timeoutMs, waitMaxMs })
    // It may have been opened during the wait.
    const shared = this.#shared
    if (shared === null) return this.#countWhileHeld(user, own)
    const both = await acquireBoth(own, () => shared.start(timeoutMs, signal, single, waitMaxMs))
    return this.#countWhileHeld(user, both)
  }

  notNow(single: boolean): NotNow | null {
    const { clock, limit } = this.#kind
    const now = clock.monotonicNow()
    if (this.#pausedUntil > now) return { waitMs: this.#pausedUntil - now, paused: true }
    const ratePerMs = limit.sessionsPerSecond / SECOND
    if (this.#sessions >= this.#sessionsMax(now) || this.#queue.mustYield(single))
      return { waitMs: Math.max(1 / ratePerMs, FULL_POLL_MS), paused: false }
    const due = dueAt({ nextStartAt: this.#nextStartAt, ratePerMs }, limit, now)
    return due > now ? { waitMs: due - now, paused: false } : null
  }

  acquire(_: AbortSignal, single: boolean): AcquireResult {
    const { clock, limit } = this.#kind
    const startedAt = clock.monotonicNow()
    const ratePerMs = limit.sessionsPerSecond / SECOND
    const due = dueAt({ nextStartAt: this.#nextStartAt, ratePerMs }, limit, startedAt)
    this.#nextStartAt = due + 1 / ratePerMs
    this.#sessions++
    const end = () => {
      this.#sessions--
      this.#meanHoldMs += (clock.monotonicNow() - startedAt - this.#meanHoldMs) * HOLD_TIME_WEIGHT
    }
    return { permit: this.#queue.toPermit(end, single) }
  }

  watch(): () => void {
    return () => {}
  }

  /** Time until a connection may be opened, in ms, as far as this process knows. */
  get waitMs(): number {
    const notNow = this.notNow(false)
    const ownMs = notNow !== null && 'waitMs' in notNow ? notNow.waitMs : 0
    return Math.max(ownMs, this.#shared?.waitMs ?? 0)
  }

  #sessionsMax(now: number): number {
    const { sessionsMax } = this.#kind.limit
    return now < this.#ceilingUntil ? Math.min(sessionsMax, this.#sessionsCeiling) : sessionsMax
  }

  /**
   * Records that the server throttled a connection, which still has its permit; `retryAfterMs` is
   * the delay that it requested, or null.
   */
  throttled(retryAfterMs: number | null): void {
    const now = this.#kind.clock.monotonicNow()
    // Sessions opened before the pause may be throttled too; they count as one event.
    const isNew = this.#pausedUntil <= now
    const ownMs = isNew ? this.#pauseMs : 0
    const pauseMs = Math.min(Math.max(ownMs, retryAfterMs ?? 0), PAUSE_MAX_MS)
    this.#pausedUntil = Math.max(this.#pausedUntil, now + pauseMs)
    if (isNew) this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS)
    this.#lowerCeiling(now)
    this.#isThrottled = true
    this.#shared?.throttled(retryAfterMs, this.#shared.otherSessions)
  }

  /**
   * Records that the server refused a further connection, which still has its permit, while it served
   * others.
   */
  limitReached(): void {
    this.#lowerCeiling(this.#kind.clock.monotonicNow())
    this.#shared?.limitReached(this.#shared.otherSessions)
  }

  /** The other refused connections are still open when the first one is, so the least counts. */
  #lowerCeiling(now: number) {
    if (this.#sessions < 2) return
    this.#sessionsCeiling = Math.min(this.#sessionsMax(now), this.#sessions - 1)
    this.#ceilingUntil = Math.max(now, this.#pausedUntil) + CEILING_MS
  }

  /** Records a successful session. */
  succeeded(): void {
    if (!this.#isThrottled) return
    this.#pauseMs = PAUSE_MIN_MS
    this.#shared?.succeeded()
  }

  #countUser(user: string) {
    const { openShared, sharedFromUsers } = this.#kind
    if (openShared === null || this.#shared !== null) return
    this.#users ??= new Set()
    this.#users.add(user)
    if (this.#users.size < sharedFromUsers) return
    this.#users = null
    this.#shared = openShared(this.#key)
  }

  /** Returns the time until a key is due, in ms. */
  #retryInMs(key: string): number {
    const now = this.#kind.clock.monotonicNow()
    const known = this.#dueTimes?.get(key)
    if (known !== undefined) return Math.max(0, known - now)
    const dueInMs = this.#nextDueIn()
    this.#dueTimes ??= new Map()
    if (this.#dueTimes.size >= DUE_TIMES_MAX) this.#dueTimes.clear()
    this.#dueTimes.set(key, now + dueInMs)
    return dueInMs
  }

  /** Returns the time until a new request is due, from the rate and the mean hold time. */
  #nextDueIn(): number {
    const { clock, limit } = this.#kind
    const now = clock.monotonicNow()
    const at = Math.max(now, this.#nextDueAt)
    this.#nextDueAt =
      at + Math.max(SECOND / limit.sessionsPerSecond, this.#meanHoldMs / limit.sessionsMax)
    return at - now
  }

  /** Forgets a user when its connection ends, unless users count permanently. */
  #countWhileHeld(user: string, acquired: AcquireResult): AcquireResult {
    if (this.#kind.keepsUsers || this.#users === null || !('permit' in acquired)) return acquired
    const { permit } = acquired
    return {
      permit: {
        release: () => {
          this.#users?.delete(user)
          permit.release()
        },
      },
    }
  }
}
