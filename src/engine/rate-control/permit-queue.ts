import { onAbort } from '../../platform/abort.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'

/** The right to hold one connection. `release` may be called twice. */
export type ConnectionPermit = { release(): void }

export type NotNow =
  /** Retry after this time, or when a permit is released. */
  | { readonly waitMs: number; readonly paused: boolean }
  /** The operator blocks us for some time; this is its reply. */
  | { readonly refusal: RecipientOutcome }

export type AcquireResult = { readonly permit: ConnectionPermit } | NotNow

/** Waiters are woken when a permit is released; this poll covers changes without a wakeup. */
export const FULL_POLL_MS = SECOND

/** How a request for a permit may wait. */
type WaitOptions = {
  readonly signal: AbortSignal
  /** True if a caller waits for the answer. */
  readonly single: boolean
  /** The longest pause to wait out, in ms. */
  readonly timeoutMs: number
  /** The longest wait in total, in ms. */
  readonly waitMaxMs: number
}

/** What a limit allows now. */
export type PermitSource = {
  /** Why there is no permit now; null if there may be one. */
  notNow(single: boolean): NotNow | null
  /** Acquires a permit; a promise if other processes have to be asked. */
  acquire(signal: AbortSignal, single: boolean): AcquireResult | Promise<AcquireResult>
  /** Calls back on changes by other processes, until the returned function is called. */
  watch(callback: () => void, single: boolean): () => void
}

/** The requests that wait for permits of one limit, in a fair order of lists and single ones. */
export class PermitQueue {
  readonly #clock: Clock
  readonly #source: PermitSource
  readonly #turns = new FairWaitQueue()
  /** Null until a request waits, because a long list has thousands of queues. */
  #waiters: Set<() => void> | null = null

  constructor(clock: Clock, source: PermitSource) {
    this.#clock = clock
    this.#source = source
  }

  /** Whether this kind of request must let the other go first. */
  mustYield(single: boolean): boolean {
    return this.#turns.mustYield(single)
  }

  get isSingleWaiting(): boolean {
    return this.#turns.isSingleWaiting
  }

  /**
   * Returns a permit, or why there is none, at once if the state decides it, else a promise. There is
   * none if a pause would last longer than `timeoutMs`, if the wait would be longer than `waitMaxMs`,
   * or if the signal aborts.
   */
  start(options: WaitOptions): AcquireResult | Promise<AcquireResult> {
    const { signal, single, waitMaxMs } = options
    const giveUpAt = this.#clock.monotonicNow() + waitMaxMs
    const start = this.#source.notNow(single) ?? this.#source.acquire(signal, single)
    const isDecided = !('then' in start) && !this.#mayWait(start, options, giveUpAt)
    return isDecided ? start : this.#wait(start, options, giveUpAt)
  }

  /** Counts an acquired permit, and returns it so that its release wakes the waiters. */
  toPermit(end: () => void, single: boolean): ConnectionPermit {
    this.#turns.onAcquired(single)
    let isHeld = true
    return {
      release: () => {
        if (!isHeld) return
        isHeld = false
        try {
          end()
        } finally {
          this.wakeAll()
        }
      },
    }
  }

  wakeAll(): void {
    if (this.#waiters !== null) for (const wake of [...this.#waiters]) wake()
  }

  #mayWait(start: AcquireResult, { signal, timeoutMs }: WaitOptions, giveUpAt: number): boolean {
    if (!('waitMs' in start) || signal.aborted) return false
    if (start.paused && start.waitMs > timeoutMs) return false
    return this.#clock.monotonicNow() + start.waitMs <= giveUpAt
  }

  async #wait(
    first: AcquireResult | Promise<AcquireResult>,
    options: WaitOptions,
    giveUpAt: number,
  ): Promise<AcquireResult> {
    const { signal, single } = options
    const dequeue = this.#turns.wait(single)
    let isAcquired = false
    try {
      // Now that this request waits, it may be its turn.
      let next = 'then' in first ? first : this.#tryAgain(signal, single)
      for (;;) {
        // Nothing else may run between the check of the state and the wait for its change.
        const start = 'then' in next ? await next : next
        if (!('waitMs' in start) || !this.#mayWait(start, options, giveUpAt)) {
          isAcquired = 'permit' in start
          return start
        }
        if (start.waitMs > 0) await this.#waitForChange(start.waitMs, signal, single)
        next = this.#tryAgain(signal, single)
      }
    } finally {
      const isLast = dequeue()
      // A waiter that yielded to this request may be able to proceed. Thousands of requests whose
      // time is over must not each wake all others.
      if (isAcquired || isLast) this.wakeAll()
    }
  }

  #tryAgain(signal: AbortSignal, single: boolean): AcquireResult | Promise<AcquireResult> {
    return this.#source.notNow(single) ?? this.#source.acquire(signal, single)
  }

  #waitForChange(waitMs: number, signal: AbortSignal, single: boolean): Promise<void> {
    this.#waiters ??= new Set()
    const waiters = this.#waiters
    return new Promise(resolve => {
      const wake = () => {
        cancel()
        stopWatching()
        waiters.delete(wake)
        unsubscribe()
        resolve()
      }
      const cancel = this.#clock.after(Math.max(1, waitMs), wake)
      const stopWatching = this.#source.watch(wake, single)
      waiters.add(wake)
      const unsubscribe = onAbort(signal, wake)
    })
  }
}

/** Consecutive single verifications that may go first while a list waits. */
const SINGLES_IN_A_ROW_MAX = 3

/** Decides between single verifications and lists that wait for connections to one operator. */
class FairWaitQueue {
  #singles = 0
  #lists = 0
  #singlesInARow = 0

  /** Adds a waiter; the returned function removes it, and returns whether none of its kind is left. */
  wait(single: boolean): () => boolean {
    this.#count(single, 1)
    return () => this.#count(single, -1) === 0
  }

  /**
   * Whether this kind of request must let the other go first. Singles have priority, with a limit.
   */
  mustYield(single: boolean): boolean {
    const isBatchTurn = this.#lists > 0 && this.#singlesInARow >= SINGLES_IN_A_ROW_MAX
    return single ? isBatchTurn : this.#singles > 0 && !isBatchTurn
  }

  onAcquired(single: boolean): void {
    this.#singlesInARow = single && this.#lists > 0 ? this.#singlesInARow + 1 : 0
  }

  get isSingleWaiting(): boolean {
    return this.#singles > 0
  }

  #count(single: boolean, change: number): number {
    if (single) this.#singles += change
    else this.#lists += change
    return single ? this.#singles : this.#lists
  }
}

/**
 * Acquires a second permit after a first one, in a fixed order to prevent a deadlock, and returns one
 * that releases both. Without the second, releases the first and returns the reason.
 */
export function acquireBoth<Failure extends object>(
  first: Acquired<Failure> | Promise<Acquired<Failure>>,
  startSecond: () => Acquired<Failure> | Promise<Acquired<Failure>>,
): Acquired<Failure> | Promise<Acquired<Failure>> {
  if ('then' in first) return first.then(acquired => acquireBoth(acquired, startSecond))
  if (!('permit' in first)) return first
  const held = first.permit
  try {
    const second = startSecond()
    if (!('then' in second)) return join(held, second)
    return second.then(
      acquired => join(held, acquired),
      error => {
        held.release()
        throw error
      },
    )
  } catch (error) {
    held.release()
    throw error
  }
}

function join<Failure extends object>(
  held: ConnectionPermit,
  second: Acquired<Failure>,
): Acquired<Failure> {
  if ('permit' in second) return { permit: { release: () => releaseAll([second.permit, held]) } }
  held.release()
  return second
}

type Acquired<Failure> = { readonly permit: ConnectionPermit } | Failure

/** Releases permits. All are released even if one throws; then this throws too. */
export function releaseAll(permits: readonly ConnectionPermit[]): void {
  const errors: unknown[] = []
  for (const permit of permits) {
    try {
      permit.release()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}
