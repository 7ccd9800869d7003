import { type Clock, SECOND } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { type AcquireResult, type ConnectionPermit, RateController } from './controller.ts'
import type { RateLimits } from './limit-table.ts'
import type { RateStateHandle } from './shared-state.ts'

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

type LimitOptions = {
  readonly clock: Clock
  readonly row: RateLimits
  /** Opens the state that all processes share; null if there is only one process. */
  readonly openShared: (() => RateStateHandle) | null
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
 * Limits concurrent connections and new ones per second, over all operators and egresses. It always
 * counts in this process; processes share its state as soon as it has `sharedFromUsers` users, so
 * that a limit with a single user causes no database load.
 */
export class ConnectionLimit {
  readonly #options: LimitOptions
  readonly #rateControllers: RateController[]
  /** The distinct users, counted until the state is shared. */
  readonly #users = new Set<string>()
  /** The due time of the next new request, monotonic ms. */
  #nextDueAt = Number.NEGATIVE_INFINITY
  /** The due times of requests without a permit, by key, monotonic ms. */
  readonly #dueTimes = new Map<string, number>()
  #waiterCount = 0
  #meanHoldMs = 0
  #isThrottled = false

  constructor(options: LimitOptions) {
    this.#options = options
    this.#rateControllers = [new RateController(options.row, options.clock)]
  }

  /** `user` is the requester: an operator, or an address of the network. */
  async start(user: string, request: LimitRequest): Promise<LimitStart> {
    this.#countUser(user)
    if (!request.isReturnable) return this.#acquire(user, request)
    const { key } = request
    const hasRoom = this.#waiterCount < this.#options.row.sessionsMax * WAITERS_PER_SESSION
    const waitsHere = this.#retryInMs(key) <= WAIT_HERE_MAX_MS && hasRoom
    this.#waiterCount++
    const acquired = await this.#acquire(user, request, waitsHere ? WAIT_HERE_MAX_MS : 0).finally(
      () => {
        this.#waiterCount--
      },
    )
    const mustRetryLater = 'waitMs' in acquired && !acquired.paused && !request.signal.aborted
    if (waitsHere || !mustRetryLater) this.#dueTimes.delete(key)
    return mustRetryLater
      ? { retryInMs: Math.max(acquired.waitMs, this.#retryInMs(key)) }
      : acquired
  }

  /** Whether `startNow` may be called: there is one process, and a connection is allowed now. */
  mayStartNow(single: boolean): boolean {
    return (
      this.#options.openShared === null && this.#rateControllers[0]?.mayStartNow(single) === true
    )
  }

  /** Does the same as `start` without waiting. */
  startNow(user: string, { key, single, isReturnable }: LimitRequest): ConnectionPermit {
    this.#countUser(user)
    if (isReturnable) {
      this.#retryInMs(key)
      this.#dueTimes.delete(key)
    }
    const acquired = this.#rateControllers[0]?.tryStart(single)
    if (acquired === undefined || !('permit' in acquired))
      throw new EvError('internal', 'startNow() needs a free connection.')
    return this.#toPermit(user, acquired.permit)
  }

  /** Time until a connection may be opened, in ms, as far as this process knows. */
  get waitMs(): number {
    return Math.max(...this.#rateControllers.map(rateController => rateController.waitMs))
  }

  /** Records that the server throttled us. */
  throttled(retryAfterMs: number | null): void {
    this.#isThrottled = true
    for (const rateController of this.#rateControllers) rateController.throttled(retryAfterMs)
  }

  /** Records a successful session. */
  succeeded(): void {
    if (this.#isThrottled)
      for (const rateController of this.#rateControllers) rateController.succeeded()
  }

  #countUser(user: string) {
    const { clock, row, openShared, sharedFromUsers } = this.#options
    if (openShared === null || this.#rateControllers.length > 1) return
    this.#users.add(user)
    if (this.#users.size < sharedFromUsers) return
    this.#users.clear()
    this.#rateControllers.push(new RateController(row, clock, openShared()))
  }

  /** Returns the time until a key is due, from the rate and the mean hold time. */
  #retryInMs(key: string): number {
    const { clock, row } = this.#options
    const now = clock.monotonicNow()
    const known = this.#dueTimes.get(key)
    if (known !== undefined) return Math.max(0, known - now)
    const at = Math.max(now, this.#nextDueAt)
    this.#nextDueAt =
      at + Math.max(SECOND / row.sessionsPerSecond, this.#meanHoldMs / row.sessionsMax)
    if (this.#dueTimes.size >= DUE_TIMES_MAX) this.#dueTimes.clear()
    this.#dueTimes.set(key, at)
    return at - now
  }

  /**
   * Yields the local limit, then the shared one, which may be opened during the wait for the first.
   */
  *#acquireCalls({ timeoutMs, signal, single }: LimitRequest, waitMaxMs?: number) {
    for (const rateController of this.#rateControllers)
      yield () => rateController.start(timeoutMs, signal, single, waitMaxMs)
  }

  async #acquire(user: string, request: LimitRequest, waitMaxMs?: number): Promise<AcquireResult> {
    const acquired = await acquireInOrder(this.#acquireCalls(request, waitMaxMs))
    return 'permit' in acquired ? { permit: this.#toPermit(user, acquired.permit) } : acquired
  }

  #toPermit(user: string, permit: ConnectionPermit): ConnectionPermit {
    const { clock, keepsUsers } = this.#options
    const startedAt = clock.monotonicNow()
    let isHeld = true
    return {
      release: () => {
        if (!keepsUsers) this.#users.delete(user)
        if (isHeld)
          this.#meanHoldMs +=
            (clock.monotonicNow() - startedAt - this.#meanHoldMs) * HOLD_TIME_WEIGHT
        isHeld = false
        permit.release()
      },
    }
  }
}

/**
 * Acquires permits one after another, in a fixed order to prevent a deadlock. If one is not
 * available, releases the earlier ones and returns the reason.
 */
export async function acquireInOrder<Failure extends object>(
  starts: Iterable<() => Promise<{ readonly permit: ConnectionPermit } | Failure>>,
): Promise<{ readonly permit: ConnectionPermit } | Failure> {
  const permits: ConnectionPermit[] = []
  const permit = { release: () => releaseAll(permits.toReversed()) }
  try {
    for (const start of starts) {
      const acquired = await start()
      if (!('permit' in acquired)) {
        permit.release()
        return acquired
      }
      permits.push(acquired.permit)
    }
    return { permit }
  } catch (error) {
    permit.release()
    throw error
  }
}

/** Releases permits. All are released even if one throws; then this throws too. */
export function releaseAll([first, ...others]: readonly ConnectionPermit[]): void {
  try {
    first?.release()
  } finally {
    if (others.length > 0) releaseAll(others)
  }
}
