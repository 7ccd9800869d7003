import { type Clock, SECOND } from '../../platform/clock.ts'
import { type AcquireResult, type ConnectionPermit, RateController } from './controller.ts'
import { type RateLimits } from './limit-table.ts'
import type { RateStateHandle } from './shared-state.ts'

/** One connection that is wanted, and how it may wait. */
export type LimitRequest = {
  /** Requests with the same key wait for the same turn. */
  readonly key: string
  /** Somebody waits for the answer. */
  readonly single: boolean
  readonly signal: AbortSignal
  /** How long a pause may be waited out, in ms. */
  readonly timeoutMs: number
  /** Whether the request can be made again when its turn comes; else it waits until `signal` aborts. */
  readonly isReturnable: boolean
}

/** `retryInMs`: others come first; the request is to be made again after this time. */
export type LimitStart = AcquireResult | { readonly retryInMs: number }

export type LimitOptions = {
  readonly clock: Clock
  readonly row: RateLimits
  /** Opens the state that all processes share; null: this process is alone. */
  readonly openShared: (() => RateStateHandle) | null
  /** From how many different users on the state is shared. */
  readonly sharedFromUsers: number
  /** Whether a user counts for good, or only while it holds a connection. */
  readonly keepsUsers: boolean
}

/**
 * How long a request that may return waits here. Longer, and its connection slot should go to other
 * work; shorter, and each row of a crowded address would be put off several times.
 */
const RESERVED_SLOT_MAX_MS = 2 * SECOND
/** So many requests that may return wait here for each connection: each wakes when one is given back. */
const RESERVED_SLOTS_PER_SESSION = 2
/** Requests whose turn is remembered: as many as a stream holds. */
const TURNS_MAX = 10_000
/** How much the last connection weighs in the mean time that one is held. */
const RESERVATION_WEIGHT = 1 / 8

/**
 * A limit of connections at the same time and of new ones a second that holds over all operators and
 * egresses. It always counts in this process; several processes share its state as soon as
 * `sharedFromUsers` users were seen, so that a limit with a single user costs no database.
 */
export class ConnectionLimit {
  readonly #options: LimitOptions
  readonly #rateControllers: RateController[]
  /** The users that count, until the state is shared. */
  readonly #users = new Set<string>()
  /** When the next request that has no turn gets one, monotonic ms. */
  #nextSlotAt = Number.NEGATIVE_INFINITY
  /** The turns of requests that have no permit yet. */
  readonly #turns = new Map<string, number>()
  #waiting = 0
  #reservedMs = 0
  #isSlowed = false

  constructor(options: LimitOptions) {
    this.#options = options
    this.#rateControllers = [new RateController(options.row, options.clock)]
  }

  /** `user` is who wants the connection: an operator, or an address of the network. */
  async start(user: string, request: LimitRequest): Promise<LimitStart> {
    this.#see(user)
    if (!request.isReturnable) return this.#acquire(user, request)
    const { key } = request
    const hasRoom = this.#waiting < this.#options.row.sessionsMax * RESERVED_SLOTS_PER_SESSION
    const isSoon = this.#retryInMs(key) <= RESERVED_SLOT_MAX_MS && hasRoom
    this.#waiting++
    const start = await this.#acquire(user, request, isSoon ? RESERVED_SLOT_MAX_MS : 0).finally(
      () => {
        this.#waiting--
      },
    )
    const isOthers = 'waitMs' in start && !start.paused && !request.signal.aborted
    if (isSoon || !isOthers) this.#turns.delete(key)
    return isOthers ? { retryInMs: Math.max(start.waitMs, this.#retryInMs(key)) } : start
  }

  /** How long until a connection may be opened, as far as this process knows. */
  get waitMs(): number {
    return Math.max(...this.#rateControllers.map(rateController => rateController.waitMs))
  }

  /** The server asked us to slow down. */
  throttled(retryAfterMs: number | null): void {
    this.#isSlowed = true
    for (const rateController of this.#rateControllers) rateController.throttled(retryAfterMs)
  }

  /** A conversation ended well. */
  succeeded(): void {
    if (this.#isSlowed)
      for (const rateController of this.#rateControllers) rateController.succeeded()
  }

  #see(user: string) {
    const { clock, row, openShared, sharedFromUsers } = this.#options
    if (openShared === null || this.#rateControllers.length > 1) return
    this.#users.add(user)
    if (this.#users.size < sharedFromUsers) return
    this.#users.clear()
    this.#rateControllers.push(new RateController(row, clock, openShared()))
  }

  /** In how long it is this request's turn, by the rate and by how long connections are held. */
  #retryInMs(key: string): number {
    const { clock, row } = this.#options
    const now = clock.monotonicNow()
    const known = this.#turns.get(key)
    if (known !== undefined) return Math.max(0, known - now)
    const at = Math.max(now, this.#nextSlotAt)
    this.#nextSlotAt =
      at + Math.max(SECOND / row.sessionsPerSecond, this.#reservedMs / row.sessionsMax)
    if (this.#turns.size >= TURNS_MAX) this.#turns.clear()
    this.#turns.set(key, at)
    return at - now
  }

  /** First what this process counts, then what all share; that may be opened while the first is waited for. */
  *#starts({ timeoutMs, signal, single }: LimitRequest, waitMaxMs?: number) {
    for (const rateController of this.#rateControllers)
      yield () => rateController.start(timeoutMs, signal, single, waitMaxMs)
  }

  async #acquire(user: string, request: LimitRequest, waitMaxMs?: number): Promise<AcquireResult> {
    const start = await startInOrder(this.#starts(request, waitMaxMs))
    if (!('permit' in start)) return start
    const startedAt = this.#options.clock.monotonicNow()
    let isReserved = true
    const permit = {
      release: () => {
        if (!this.#options.keepsUsers) this.#users.delete(user)
        if (isReserved)
          this.#reservedMs +=
            (this.#options.clock.monotonicNow() - startedAt - this.#reservedMs) * RESERVATION_WEIGHT
        isReserved = false
        start.permit.release()
      },
    }
    return { permit }
  }
}

/**
 * Takes permits one after another, so that nobody waits in a circle. Where one cannot be had, those taken before are
 * released, and what stands in its way is given.
 */
export async function startInOrder<Obstacle extends object>(
  starts: Iterable<() => Promise<{ readonly permit: ConnectionPermit } | Obstacle>>,
): Promise<{ readonly permit: ConnectionPermit } | Obstacle> {
  const permits: ConnectionPermit[] = []
  const permit = {
    release: () => {
      for (const one of permits.toReversed()) one.release()
    },
  }
  try {
    for (const start of starts) {
      const started = await start()
      if (!('permit' in started)) {
        permit.release()
        return started
      }
      permits.push(started.permit)
    }
    return { permit }
  } catch (error) {
    permit.release()
    throw error
  }
}
