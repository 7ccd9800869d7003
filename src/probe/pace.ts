import { type Clock, MINUTE, SECOND } from '../base/clock.ts'
import type { Answer } from '../smtp/answer.ts'
import { HEARD_MAX, Heard } from './heard.ts'
import type { PaceStatus, Pause, Refusal } from './pace-status.ts'
import { Turns } from './turns.ts'

/** How fast one operator may be asked by one egress, to start with. */
export type PaceRow = {
  /** Connections at the same time. */
  readonly sessionsMax: number
  /** Recipients in one connection, before a new one is opened. */
  readonly recipientsPerSession: number
  /** Recipients in one MAIL transaction. */
  readonly recipientsPerTransaction: number
  /** New connections a second. */
  readonly sessionsPerSecond: number
  /** Unknown users in a row after which we leave, so as not to look like a dictionary attack. */
  readonly unknownStreakMax: number
}

/** Postfix's minimal_backoff_time and maximal_backoff_time: 300 s and 4,000 s. */
const PAUSE_MIN_MS = 5 * MINUTE
const PAUSE_MAX_MS = 4_000 * SECOND
/** How long a refusal of our address is believed before we ask again. */
const REFUSAL_MS = 30 * MINUTE
/** A first pause after too many unknown users in a row; it doubles while they go on. */
const STREAK_PAUSE_MIN_MS = 10 * SECOND
const STREAK_PAUSE_MAX_MS = 2 * MINUTE
/** The slowest that halving may make us: one connection in five minutes. */
const RATE_MIN_PER_MS = 1 / (5 * MINUTE)

/** The right to hold one connection; `release` gives it back, and may be called twice. */
export type Permit = { readonly release: () => void }

export type Start =
  | { readonly permit: Permit }
  /** Not now: ask again after this time, or when a permit comes back. */
  | { readonly waitMs: number; readonly paused: boolean }
  /** The operator refuses us: nothing is asked for some time, this is what it said. */
  | { readonly refusal: Answer }

/**
 * The pace of one operator and egress. It halves on 421, 4.7.x or a refusal of us and grows slowly on
 * success, as Postfix's scheduler does.
 */
export class Pace {
  readonly row: PaceRow
  readonly #clock: Clock
  #sessions = 0
  #sessionsAllowed: number
  #ratePerMs: number
  /** When the next connection is due by the rate; behind now by at most a burst of `sessionsMax`. */
  #nextStartAt = Number.NEGATIVE_INFINITY
  #pausedUntil = Number.NEGATIVE_INFINITY
  /** Wall clock, for people. */
  #pausedAt = 0
  #throttledUntil = Number.NEGATIVE_INFINITY
  #pauseMs = PAUSE_MIN_MS
  #streakPauseMs = STREAK_PAUSE_MIN_MS
  /** Unknown users in a row, over all connections. */
  #streak = 0
  /** `at` is of the wall clock, for people; `until` of the ticks. */
  #refusal: { answer: Answer; until: number; at: number; turnedAway: number } | null = null
  #wakers = new Set<() => void>()
  readonly #turns = new Turns()
  readonly #heard = new Heard()

  constructor(row: PaceRow, clock: Clock) {
    this.row = row
    this.#clock = clock
    this.#sessionsAllowed = row.sessionsMax
    this.#ratePerMs = row.sessionsPerSecond / SECOND
  }

  /** Asks for the right to open a connection now; `single`: for somebody who waits. */
  tryStart(single = false): Start {
    if (this.#refusal !== null && this.isRefused) return { refusal: this.#refusal.answer }
    const now = this.#clock.ticks()
    if (this.#pausedUntil > now) return { waitMs: this.#pausedUntil - now, paused: true }
    if (this.#isFull || this.#turns.isOthers(single)) {
      return { waitMs: 1 / this.#ratePerMs, paused: false }
    }
    const dueAt = this.#dueAt(now)
    if (dueAt > now) return { waitMs: dueAt - now, paused: false }
    this.#nextStartAt = dueAt + 1 / this.#ratePerMs
    this.#sessions++
    this.#turns.began(single)
    return { permit: this.#permit() }
  }

  /**
   * Waits for the right to open a connection. Gives up with `waitMs` when a pause would last longer than
   * `patienceMs`, or when `signal` aborts.
   */
  async start(patienceMs: number, signal: AbortSignal, single = false): Promise<Start> {
    const leave = this.#turns.wait(single)
    try {
      for (;;) {
        const start = this.tryStart(single)
        if (!('waitMs' in start)) return start
        if (signal.aborted || (start.paused && start.waitMs > patienceMs)) return start
        await this.#change(start.waitMs, signal)
      }
    } finally {
      leave()
      // Whoever let it go first.
      this.#wakeAll()
    }
  }

  /** Somebody waits for a connection and lists have them all: one of them should be left soon. */
  get isWanted(): boolean {
    return this.#isFull && this.#turns.isSingleWaiting
  }

  get #isFull(): boolean {
    return this.#sessions >= Math.floor(this.#sessionsAllowed)
  }

  /** How long until a connection may be opened, as far as the rate and a pause say; asks for nothing. */
  get readyInMs(): number {
    if (this.isRefused) return 0
    const now = this.#clock.ticks()
    return Math.max(0, this.#pausedUntil - now, this.#dueAt(now) - now)
  }

  /** The operator refuses us at present: who asks is told so without being asked for. */
  get isRefused(): boolean {
    return this.#refusal !== null && this.#refusal.until > this.#clock.ticks()
  }

  /** A conversation ended well. */
  succeeded(): void {
    const { sessionsMax, sessionsPerSecond } = this.row
    // One more connection for each clean cohort, as many as there are now.
    this.#sessionsAllowed = Math.min(sessionsMax, this.#sessionsAllowed + 1 / this.#sessionsAllowed)
    this.#ratePerMs = Math.min(sessionsPerSecond / SECOND, this.#ratePerMs * 1.25)
    this.#pauseMs = PAUSE_MIN_MS
    this.#refusal = null
  }

  /** The operator asked us to slow down; `retryAfterMs` is the time it named, if it did. */
  throttled(retryAfterMs: number | null): void {
    const now = this.#clock.ticks()
    // Conversations begun before the pause may say the same: that is one trouble, not several.
    const isNew = this.#throttledUntil <= now
    const pauseMs = Math.min(Math.max(isNew ? this.#pauseMs : 0, retryAfterMs ?? 0), PAUSE_MAX_MS)
    if (isNew) {
      this.#halve()
      this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS)
    }
    this.#throttledUntil = Math.max(this.#throttledUntil, now + pauseMs)
    this.#pause(now, this.#throttledUntil)
  }

  /** The operator refuses our address, name or sender. */
  refused(answer: Answer): void {
    if (!this.isRefused) this.#halve()
    // It goes on until somebody was let in, however often we are told of it.
    const { at, turnedAway } = this.#refusal ?? { at: this.#clock.now(), turnedAway: 0 }
    this.#refusal = { answer, until: this.#clock.ticks() + REFUSAL_MS, at, turnedAway }
    this.#wakeAll()
  }

  /** Addresses that were to be asked about while it refused us. */
  turnedAway(count: number): void {
    if (this.#refusal !== null) this.#refusal.turnedAway += count
  }

  /**
   * One more unknown user, whichever connection met it. True when it is one too many in a row: the operator
   * is paused, and who is there should leave.
   */
  unknown(): boolean {
    this.#streak++
    if (this.#streak < this.row.unknownStreakMax) return false
    this.strayed()
    return true
  }

  /** How many more unknown users in a row the operator may be asked about. */
  get unknownsLeft(): number {
    return this.row.unknownStreakMax - this.#streak
  }

  /** One more recipient was answered for. */
  heard(isRefused: boolean): void {
    this.#heard.add(isRefused)
  }

  /** Of the recipients asked lately, the share that was refused, for whatever reason; all, before anybody was asked. */
  get refusedShare(): number {
    return this.#heard.refusedShare
  }

  /** The server told of a mailbox that is there, or would not tell: no row of unknown ones. */
  notUnknown(): void {
    this.#streak = 0
  }

  /** Too many unknown users in a row. */
  strayed(): void {
    this.#streak = 0
    const now = this.#clock.ticks()
    this.#pause(now, now + this.#streakPauseMs)
    this.#streakPauseMs = Math.min(this.#streakPauseMs * 2, STREAK_PAUSE_MAX_MS)
  }

  /** A real recipient was found: the unknown ones before it were no dictionary attack. */
  found(): void {
    this.#streak = 0
    this.#streakPauseMs = STREAK_PAUSE_MIN_MS
  }

  /** What people should see first: a refusal, the more it turned away; then a pause; then who has most to do. */
  get urgency(): number {
    if (this.#refusal !== null) return 1e12 + this.#refusal.turnedAway
    if (this.#pausedUntil > this.#clock.ticks()) return 1e9
    return this.#sessions * HEARD_MAX + this.#heard.count
  }

  /** For people. */
  status(operator: string): PaceStatus {
    const { sessionsMax, sessionsPerSecond: sessionsPerSecondMax, unknownStreakMax } = this.row
    return {
      ...{
        operator,
        sessions: this.#sessions,
        sessionsMax,
        sessionsPerSecondMax,
        unknownStreakMax,
      },
      sessionsAllowed: Math.floor(this.#sessionsAllowed),
      sessionsPerSecond: this.#ratePerMs * SECOND,
      ...{ heard: this.#heard.count, pause: this.#pauseStatus, refusal: this.#refusalStatus },
    }
  }

  get #pauseStatus(): Pause | null {
    const now = this.#clock.ticks()
    if (this.#pausedUntil <= now) return null
    const why = this.#throttledUntil > now ? 'throttled' : 'unknown-users'
    return { since: this.#pausedAt, until: this.#atWall(this.#pausedUntil), why }
  }

  get #refusalStatus(): Refusal | null {
    if (this.#refusal === null) return null
    const { answer, at, until, turnedAway } = this.#refusal
    return { answer, since: at, until: this.#atWall(until), turnedAway }
  }

  #atWall(ticks: number): number {
    return Math.round(this.#clock.now() + ticks - this.#clock.ticks())
  }

  #pause(now: number, until: number) {
    if (this.#pausedUntil <= now) this.#pausedAt = this.#clock.now()
    this.#pausedUntil = Math.max(this.#pausedUntil, until)
  }

  /** When the rate allows the next connection; a burst of `sessionsMax` is allowed after a rest. */
  #dueAt(now: number): number {
    return Math.max(this.#nextStartAt, now - (this.row.sessionsMax - 1) / this.#ratePerMs)
  }

  #halve() {
    this.#sessionsAllowed = Math.max(1, Math.floor(this.#sessionsAllowed / 2))
    this.#ratePerMs = Math.max(RATE_MIN_PER_MS, this.#ratePerMs / 2)
  }

  #permit(): Permit {
    let held = true
    return {
      release: () => {
        if (!held) return
        held = false
        this.#sessions--
        this.#wakeAll()
      },
    }
  }

  #change(waitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const wake = () => {
        cancel()
        this.#wakers.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const cancel = this.#clock.after(Math.max(1, waitMs), wake)
      this.#wakers.add(wake)
      signal.addEventListener('abort', wake, { once: true })
    })
  }

  #wakeAll() {
    for (const wake of [...this.#wakers]) wake()
  }
}
