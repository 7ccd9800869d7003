import { type Clock, SECOND } from '../../platform/clock.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { RateLimits } from './limit-table.ts'
import { LocalRateState, RECENT_OUTCOMES_MAX, RecentOutcomes } from './local-state.ts'
import {
  type AcquireResult,
  FULL_POLL_MS,
  type NotNow,
  PermitQueue,
  type PermitSource,
} from './permit-queue.ts'
import {
  currentBlock,
  currentStop,
  dueAt,
  isBlocked,
  isFull,
  onBlocked,
  onDomainBlocked,
  onKnownRecipient,
  onLimitReached,
  onOtherReply,
  onSkipped,
  onSucceeded,
  onThrottled,
  onUnknownRecipient,
  onUnknownStreak,
  PAUSE_MIN_MS,
  type ProbeStop,
  unservedForMs,
} from './rules.ts'
import type { RateStateHandle } from './shared-state.ts'

/** The retry delay while the shared state cannot be reached. */
const RETRY_MS = SECOND

/**
 * Controls the rate of one operator and egress. The rate halves on 421, 4.7.x or a block and grows
 * slowly on success, as in Postfix's scheduler. The rules are in `rules.ts`; the state is local to
 * this process or shared with others.
 */
export class RateController implements PermitSource {
  /** The limits at the start. */
  readonly row: RateLimits
  readonly #clock: Clock
  readonly #handle: RateStateHandle
  readonly #queue: PermitQueue
  readonly #recent = new RecentOutcomes()
  /** When the operator last accepted a recipient or named it unknown, monotonic ms. */
  #servedAt = Number.NEGATIVE_INFINITY

  constructor(
    limits: RateLimits,
    clock: Clock,
    handle: RateStateHandle = new LocalRateState(limits, clock),
  ) {
    this.row = limits
    this.#clock = clock
    this.#handle = handle
    this.#queue = new PermitQueue(clock, this)
  }

  /**
   * Returns a permit to open a connection to the operator, at once if the state is local and allows it
   * or if there is nothing to wait for. Returns `waitMs` if a pause would last longer than
   * `timeoutMs`, if the wait would be longer than `waitMaxMs`, or if `signal` aborts. While the shared
   * state cannot be reached, it rejects for a `single` request, and a list waits.
   */
  start(
    timeoutMs: number,
    signal: AbortSignal,
    single = false,
    waitMaxMs = Number.POSITIVE_INFINITY,
  ): AcquireResult | Promise<AcquireResult> {
    return this.#queue.start({ timeoutMs, signal, single, waitMaxMs })
  }

  notNow(single: boolean): NotNow | null {
    const { state, sessions } = this.#handle
    const now = this.#handle.now()
    const block = currentBlock(state, now)
    if (block !== null) return { refusal: block.answer }
    if (state.pausedUntil > now) return { waitMs: state.pausedUntil - now, paused: true }
    if (
      isFull(state, sessions + this.#handle.reservedForOthers(single)) ||
      this.#queue.mustYield(single)
    ) {
      return { waitMs: Math.max(1 / state.ratePerMs, FULL_POLL_MS), paused: false }
    }
    const due = dueAt(state, this.row, now)
    return due > now ? { waitMs: due - now, paused: false } : null
  }

  acquire(signal: AbortSignal, single: boolean): AcquireResult | Promise<AcquireResult> {
    const acquired = this.#handle.acquire(signal, single)
    if (typeof acquired === 'function') return { permit: this.#queue.toPermit(acquired, single) }
    return acquired.then(
      // Without a permit, the handle has a newer state now.
      end =>
        end === null ? { waitMs: 0, paused: false } : { permit: this.#queue.toPermit(end, single) },
      error => {
        if (single) throw error
        return { waitMs: RETRY_MS, paused: false }
      },
    )
  }

  watch(callback: () => void, single: boolean): () => void {
    return this.#handle.watch(callback, single)
  }

  /** A single verification waits while all connections are in use: a list should release one. */
  get isRequested(): boolean {
    const { state, sessions, isSingleWaiting } = this.#handle
    return isFull(state, sessions) && (isSingleWaiting || this.#queue.isSingleWaiting)
  }

  /**
   * Open connections to the operator besides one that the caller holds, of all processes that share
   * the state.
   */
  get otherSessions(): number {
    return Math.max(0, this.#handle.sessions - 1)
  }

  /** Time until the rate and the pause allow a connection, in ms. Acquires nothing. */
  get readyInMs(): number {
    const { state } = this.#handle
    const now = this.#handle.now()
    if (isBlocked(state, now)) return 0
    return Math.max(0, state.pausedUntil - now, dueAt(state, this.row, now) - now)
  }

  /** True during a pause, after throttling or a streak of unknown users. */
  get isPaused(): boolean {
    return this.#handle.state.pausedUntil > this.#handle.now()
  }

  /** Time until a connection may be opened, in ms, as far as known here. Acquires nothing. */
  get waitMs(): number {
    const notNow = this.notNow(false)
    return notNow !== null && 'waitMs' in notNow ? notNow.waitMs : 0
  }

  /** True while the operator blocks us: targets get its reply without being probed. */
  get isRefused(): boolean {
    return this.refusedForMs > 0
  }

  /** How much longer the operator counts as blocking, in ms; 0 if it does not. */
  get refusedForMs(): number {
    const { refusal } = this.#handle.state
    return refusal === null ? 0 : Math.max(0, refusal.until - this.#handle.now())
  }

  /** How long the operator has throttled or blocked us without serving us, in ms. */
  get unservedForMs(): number {
    return unservedForMs(this.#handle.state, this.#handle.now())
  }

  /** How long ago it last served a recipient of this process, in ms; infinite if it has not. */
  get servedAgoMs(): number {
    return this.#clock.monotonicNow() - this.#servedAt
  }

  /**
   * True if it serves us, or stopped only moments ago: a reply that asks to slow down is then no
   * attempt for recipients that were not named.
   */
  get isServing(): boolean {
    return this.servedAgoMs !== Number.POSITIVE_INFINITY && this.unservedForMs < PAUSE_MIN_MS
  }

  /** Records a successful session. */
  succeeded(): void {
    this.#handle.change((state, now) => onSucceeded(state, this.row, now))
  }

  /** Records throttling by the operator; the parameters are those of `onThrottled`. */
  throttled(
    retryAfterMs: number | null,
    otherSessions = 0,
    answer: RecipientOutcome | null = null,
  ): void {
    this.#handle.change((state, now) =>
      onThrottled(state, now, retryAfterMs, otherSessions, answer),
    )
    if (this.isRefused) this.#queue.wakeAll()
  }

  /** Records that a server refused a further connection while `otherSessions` were open. */
  limitReached(otherSessions: number): void {
    this.#handle.change((state, now) => onLimitReached(state, now, otherSessions))
  }

  /** Records a block of our IP address, HELO name or sender. */
  refused(answer: RecipientOutcome): void {
    this.#handle.change((state, now) => onBlocked(state, now, answer))
    this.#queue.wakeAll()
  }

  /** Records a block at RCPT by the servers of one domain. */
  refusedByDomain(domain: string, answer: RecipientOutcome): void {
    this.#handle.change((state, now) => onDomainBlocked(state, now, { domain, answer }))
    this.#queue.wakeAll()
  }

  /** Counts addresses that were skipped during a block. */
  skipped(count: number): void {
    this.#handle.change(state => onSkipped(state, count))
  }

  /**
   * Counts one unknown user, from any connection. Returns true at the streak limit: the operator is
   * paused, and the session should end.
   */
  onUnknownRecipient(): boolean {
    this.#servedAt = this.#clock.monotonicNow()
    this.#handle.note(onUnknownRecipient)
    if (this.unknownsLeft > 0) return false
    this.onUnknownStreak()
    return true
  }

  /**
   * How many more consecutive unknown users are allowed; none, or fewer, if the streaks of several
   * processes were merged.
   */
  get unknownsLeft(): number {
    return this.row.unknownStreakMax - this.#handle.state.streak
  }

  /** Counts one recipient with a reply. */
  onReply(isRefused: boolean): void {
    this.#recent.add(isRefused)
  }

  /**
   * The share of refused recipients among recent ones, for any reason; 1 before the first reply.
   */
  get refusedShare(): number {
    return this.#recent.refusedShare
  }

  /** The share of refused recipients to expect; null while too little is known to plan with it. */
  get expectedRefusedShare(): number | null {
    return this.#recent.expectedRefusedShare
  }

  /** Records an existing mailbox or an inconclusive reply, which ends a streak of unknown users. */
  onOtherReply(): void {
    this.#handle.note(onOtherReply)
  }

  /** Pauses the operator after a streak of unknown users. */
  onUnknownStreak(): void {
    this.#handle.change(onUnknownStreak)
  }

  /** Records an accepted recipient, so the unknown users before it were not a dictionary attack. */
  onKnownRecipient(): void {
    this.#servedAt = this.#clock.monotonicNow()
    this.#handle.note(onKnownRecipient)
  }

  /** Why no connection may be opened, and until when, epoch ms; null if one may be. */
  get stop(): ProbeStop | null {
    const stop = currentStop(this.#handle.state, this.#handle.now())
    return stop && { ...stop, until: this.#toEpochMs(stop.until) }
  }

  /** Sort key for the dashboard: blocks by skipped addresses, then pauses, then by activity. */
  get urgency(): number {
    const { state, sessions } = this.#handle
    if (state.refusal !== null) return 1e12 + state.refusal.skipped
    if (state.pausedUntil > this.#handle.now()) return 1e9
    return sessions * RECENT_OUTCOMES_MAX + this.#recent.count
  }

  /** Returns the status for the API and the dashboard. */
  status(operator: string): RateStatus {
    const { sessionsMax, sessionsPerSecond: sessionsPerSecondMax, unknownStreakMax } = this.row
    const { state, sessions } = this.#handle
    return {
      operator,
      sessions,
      sessionsMax,
      sessionsPerSecondMax,
      unknownStreakMax,
      sessionsAllowed: Math.floor(state.sessionsAllowed),
      sessionsPerSecond: state.ratePerMs * SECOND,
      recent: this.#recent.count,
      pause: this.#pauseStatus,
      refusal: this.#refusalStatus,
    }
  }

  get #pauseStatus(): Pause | null {
    const { pausedAt, pausedUntil, throttledUntil } = this.#handle.state
    const now = this.#handle.now()
    if (pausedUntil <= now) return null
    const why = throttledUntil > now ? 'throttled' : 'unknown-users'
    return { since: this.#toEpochMs(pausedAt), until: this.#toEpochMs(pausedUntil), why }
  }

  get #refusalStatus(): Block | null {
    const { refusal } = this.#handle.state
    if (refusal === null) return null
    const { answer, at, until, skipped } = refusal
    return { answer, since: this.#toEpochMs(at), until: this.#toEpochMs(until), skipped }
  }

  #toEpochMs(time: number): number {
    return Math.round(this.#clock.now() + time - this.#handle.now())
  }
}

/** The current rate status of one operator and egress. Times are epoch ms. */
export type RateStatus = {
  readonly operator: string
  /** Open connections, the adaptive limit, and the maximum from the table or the settings. */
  readonly sessions: number
  readonly sessionsAllowed: number
  readonly sessionsMax: number
  /** New connections per second: the adaptive limit and the maximum. */
  readonly sessionsPerSecond: number
  readonly sessionsPerSecondMax: number
  /** Recently probed recipients; older ones count half. */
  readonly recent: number
  /** Consecutive unknown users after which the operator is paused. */
  readonly unknownStreakMax: number
  readonly pause: Pause | null
  /** The last block; it outlasts `until`, until a session succeeds. */
  readonly refusal: Block | null
}

/** A period without probes. */
export type Pause = {
  readonly since: number
  readonly until: number
  /** `throttled`: by the operator. `unknown-users`: after a streak of unknown users. */
  readonly why: 'throttled' | 'unknown-users'
}

/** A block by the operator. */
export type Block = {
  readonly since: number
  /** Until then, targets get the reply without being probed. */
  readonly until: number
  /** The reply, untrusted and not sanitized. */
  readonly answer: RecipientOutcome
  /** Addresses that were skipped during the block. */
  readonly skipped: number
}
