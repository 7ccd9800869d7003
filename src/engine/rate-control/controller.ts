import { type RateLimits } from './limit-table.ts'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import {
  FairWaitQueue,
  LocalRateState,
  RECENT_OUTCOMES_MAX,
  RecentOutcomes,
} from './local-state.ts'
import {
  dueAt,
  isBlocked,
  isFull,
  onBlocked,
  onDomainBlocked,
  onKnownRecipient,
  onOtherReply,
  onSkipped,
  onSucceeded,
  onThrottled,
  onUnknownRecipient,
  onUnknownStreak,
} from './rules.ts'
import type { PermitEnd, RateStateHandle } from './shared-state.ts'

/** The right to hold one connection; `release` gives it back, and may be called twice. */
export type ConnectionPermit = { readonly release: () => void }

type NotNow =
  /** Ask again after this time, or when a permit comes back. */
  | { readonly waitMs: number; readonly paused: boolean }
  /** The operator refuses us: nothing is asked for some time, this is what it said. */
  | { readonly refusal: RecipientOutcome }

export type AcquireResult = { readonly permit: ConnectionPermit } | NotNow

/** Whoever waits for a connection is called when one is given back; this is for what nobody calls for. */
const FULL_POLL_MS = SECOND
/** After it could not be told whether a connection may be opened. */
const RETRY_MS = SECOND

/**
 * The pace of one operator and egress. It halves on 421, 4.7.x or a refusal of us and grows slowly on
 * success, as Postfix's scheduler does. Its rules are in `pace/rules.ts`; what it keeps is kept in this process, or
 * shared with others.
 */
export class RateController {
  readonly row: RateLimits
  readonly #clock: Clock
  readonly #kept: RateStateHandle
  #wakers = new Set<() => void>()
  readonly #turns = new FairWaitQueue()
  readonly #recent = new RecentOutcomes()

  constructor(
    row: RateLimits,
    clock: Clock,
    kept: RateStateHandle = new LocalRateState(row, clock),
  ) {
    this.row = row
    this.#clock = clock
    this.#kept = kept
  }

  /** Asks for the right to open a connection now, of a pace that is kept here; `single`: for somebody who waits. */
  tryStart(single = false): AcquireResult {
    const notNow = this.#notNow(single)
    if (notNow !== null) return notNow
    const started = this.#kept.begin(NEVER, single)
    if (typeof started === 'function') return { permit: this.#permit(started, single) }
    throw new EvError('internal', 'A pace that is shared was asked as if it were not.')
  }

  /**
   * Waits for the right to open a connection. Gives `waitMs` when a pause would last longer than `patienceMs`, when
   * the wait would be longer than `waitMaxMs`, or when `signal` aborts. While the shared state cannot be reached, it
   * rejects for a `single` request, and a list waits.
   */
  async start(
    timeoutMs: number,
    signal: AbortSignal,
    single = false,
    waitMaxMs = Number.POSITIVE_INFINITY,
  ): Promise<AcquireResult> {
    const leave = this.#turns.wait(single)
    const giveUpAt = this.#clock.monotonicNow() + waitMaxMs
    try {
      for (;;) {
        const start = this.#notNow(single) ?? (await this.#begin(signal, single))
        if (!('waitMs' in start)) return start
        if (signal.aborted || (start.paused && start.waitMs > timeoutMs)) return start
        if (this.#clock.monotonicNow() + start.waitMs > giveUpAt) return start
        if (start.waitMs > 0) await this.#change(start.waitMs, signal, single)
      }
    } finally {
      leave()
      // Whoever let it go first.
      this.#wakeAll()
    }
  }

  #notNow(single: boolean): NotNow | null {
    const { state, sessions } = this.#kept
    const now = this.#kept.now()
    if (state.refusal !== null && isBlocked(state, now)) return { refusal: state.refusal.answer }
    if (state.pausedUntil > now) return { waitMs: state.pausedUntil - now, paused: true }
    if (isFull(state, sessions + this.#kept.kept(single)) || this.#turns.isOthers(single)) {
      return { waitMs: Math.max(1 / state.ratePerMs, FULL_POLL_MS), paused: false }
    }
    const due = dueAt(state, this.row, now)
    return due > now ? { waitMs: due - now, paused: false } : null
  }

  async #begin(signal: AbortSignal, single: boolean): Promise<AcquireResult> {
    const started = this.#kept.begin(signal, single)
    try {
      const end = typeof started === 'function' ? started : await started
      if (end !== null) return { permit: this.#permit(end, single) }
    } catch (error) {
      if (single) throw error
      return { waitMs: RETRY_MS, paused: false }
    }
    // By now it is known better.
    return { waitMs: 0, paused: false }
  }

  /** Somebody waits for a connection and lists have them all: one of them should be left soon. */
  get isRequested(): boolean {
    const { state, sessions, isSingleWaiting } = this.#kept
    return isFull(state, sessions) && (isSingleWaiting || this.#turns.isSingleWaiting)
  }

  /** How long until a connection may be opened, as far as the rate and a pause say; asks for nothing. */
  get readyInMs(): number {
    const { state } = this.#kept
    const now = this.#kept.now()
    if (isBlocked(state, now)) return 0
    return Math.max(0, state.pausedUntil - now, dueAt(state, this.row, now) - now)
  }

  /** Nobody is asked for a while: the operator wants to be asked more slowly, or knew too few. */
  get isPaused(): boolean {
    return this.#kept.state.pausedUntil > this.#kept.now()
  }

  /** How long until a connection may be opened, as far as is known here; asks for nothing. */
  get waitMs(): number {
    const notNow = this.#notNow(false)
    return notNow !== null && 'waitMs' in notNow ? notNow.waitMs : 0
  }

  /** The operator refuses us at present: who asks is told so without being asked for. */
  get isRefused(): boolean {
    return this.refusedForMs > 0
  }

  /** How much longer the operator is taken to refuse us; 0: it does not. */
  get refusedForMs(): number {
    const { refusal } = this.#kept.state
    return refusal === null ? 0 : Math.max(0, refusal.until - this.#kept.now())
  }

  /** A conversation ended well. */
  succeeded(): void {
    this.#kept.change(state => onSucceeded(state, this.row))
  }

  /** The operator asked us to slow down; `retryAfterMs` is the time it named, if it did. */
  throttled(retryAfterMs: number | null): void {
    this.#kept.change((state, now) => onThrottled(state, now, retryAfterMs))
  }

  /** The operator refuses our address, name or sender. */
  refused(answer: RecipientOutcome): void {
    this.#kept.change((state, now) => onBlocked(state, now, answer))
    this.#wakeAll()
  }

  /** The servers of one of its domains refuse us at RCPT, for what we are. */
  refusedByDomain(domain: string, answer: RecipientOutcome): void {
    this.#kept.change((state, now) => onDomainBlocked(state, now, { domain, answer }))
    this.#wakeAll()
  }

  /** Addresses that were to be asked about while it refused us. */
  skipped(count: number): void {
    this.#kept.change(state => onSkipped(state, count))
  }

  /**
   * One more unknown user, whichever connection met it. True when it is one too many in a row: the operator
   * is paused, and who is there should leave.
   */
  unknown(): boolean {
    this.#kept.note(onUnknownRecipient)
    if (this.unknownsLeft > 0) return false
    this.streakExceeded()
    return true
  }

  /** How many more unknown users in a row the operator may be asked about. */
  get unknownsLeft(): number {
    return this.row.unknownStreakMax - this.#kept.state.streak
  }

  /** One more recipient was answered for. */
  recent(isRefused: boolean): void {
    this.#recent.add(isRefused)
  }

  /** Nobody was asked about anybody yet. */
  get isNew(): boolean {
    return this.#recent.count === 0
  }

  /** Of the recipients asked lately, the share that was refused, for whatever reason; all, before anybody was asked. */
  get refusedShare(): number {
    return this.#recent.refusedShare
  }

  /** The server told of a mailbox that is there, or would not tell: no row of unknown ones. */
  notUnknown(): void {
    this.#kept.note(onOtherReply)
  }

  /** Too many unknown users in a row. */
  streakExceeded(): void {
    this.#kept.change(onUnknownStreak)
  }

  /** A real recipient was found: the unknown ones before it were no dictionary attack. */
  found(): void {
    this.#kept.note(onKnownRecipient)
  }

  /** What people should see first: a refusal, the more it turned away; then a pause; then who has most to do. */
  get urgency(): number {
    const { state, sessions } = this.#kept
    if (state.refusal !== null) return 1e12 + state.refusal.onSkipped
    if (state.pausedUntil > this.#kept.now()) return 1e9
    return sessions * RECENT_OUTCOMES_MAX + this.#recent.count
  }

  /** For people. */
  status(operator: string): RateStatus {
    const { sessionsMax, sessionsPerSecond: sessionsPerSecondMax, unknownStreakMax } = this.row
    const { state, sessions } = this.#kept
    return {
      ...{ operator, sessions, sessionsMax, sessionsPerSecondMax, unknownStreakMax },
      sessionsAllowed: Math.floor(state.sessionsAllowed),
      sessionsPerSecond: state.ratePerMs * SECOND,
      ...{ recent: this.#recent.count, pause: this.#pauseStatus, refusal: this.#refusalStatus },
    }
  }

  get #pauseStatus(): Pause | null {
    const { pausedAt, pausedUntil, throttledUntil } = this.#kept.state
    const now = this.#kept.now()
    if (pausedUntil <= now) return null
    const why = throttledUntil > now ? 'throttled' : 'unknown-users'
    return { since: this.#atWall(pausedAt), until: this.#atWall(pausedUntil), why }
  }

  get #refusalStatus(): Block | null {
    const { refusal } = this.#kept.state
    if (refusal === null) return null
    const { answer, at, until, onSkipped: skipped } = refusal
    return { answer, since: this.#atWall(at), until: this.#atWall(until), skipped }
  }

  #atWall(time: number): number {
    return Math.round(this.#clock.now() + time - this.#kept.now())
  }

  #permit(end: PermitEnd, single: boolean): ConnectionPermit {
    this.#turns.began(single)
    let held = true
    return {
      release: () => {
        if (!held) return
        held = false
        end()
        this.#wakeAll()
      },
    }
  }

  #change(waitMs: number, signal: AbortSignal, single: boolean): Promise<void> {
    return new Promise(resolve => {
      const wake = () => {
        cancel()
        unwatch()
        this.#wakers.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const cancel = this.#clock.after(Math.max(1, waitMs), wake)
      const unwatch = this.#kept.watch(wake, single)
      this.#wakers.add(wake)
      signal.addEventListener('abort', wake, { once: true })
    })
  }

  #wakeAll() {
    for (const wake of [...this.#wakers]) wake()
  }
}

const NEVER = new AbortController().signal

/** How one operator is asked by one egress at present. Times are of the wall clock, epoch ms. */
export type RateStatus = {
  readonly operator: string
  /** Connections open now, and how many may be: as many at most as the table or the settings say. */
  readonly sessions: number
  readonly sessionsAllowed: number
  readonly sessionsMax: number
  /** Connections that may be opened each second now, and at most. */
  readonly sessionsPerSecond: number
  readonly sessionsPerSecondMax: number
  /** Recipients asked lately; older ones count half. */
  readonly recent: number
  /** Unknown users in a row after which we leave. */
  readonly unknownStreakMax: number
  readonly pause: Pause | null
  /** Kept when its time is over, until somebody is let in. */
  readonly refusal: Block | null
}

/** Nobody is asked for some time. */
export type Pause = {
  readonly since: number
  readonly until: number
  /** `throttled`: it asked us to slow down. `unknown-users`: it knew none of too many in a row. */
  readonly why: 'throttled' | 'unknown-users'
}

/** The operator wants none of us. */
export type Block = {
  readonly since: number
  /** Who asks until then is told so unasked. */
  readonly until: number
  /** What it said, foreign and unclean. */
  readonly answer: RecipientOutcome
  /** Addresses that were to be asked about meanwhile. */
  readonly skipped: number
}
