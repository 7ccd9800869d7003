import type { Clock } from '../../platform/clock.ts'
import type { RateLimits } from './limit-table.ts'
import { newState, onStarted, type RateChange, type RateNote, type RateState } from './rules.ts'
import type { PermitEnd, RateStateHandle } from './shared-state.ts'

/** A pace that nobody else goes by, in the ticks of the clock. */
export class LocalRateState implements RateStateHandle {
  readonly #row: RateLimits
  readonly #clock: Clock
  #state: RateState
  #sessions = 0

  constructor(row: RateLimits, clock: Clock) {
    this.#row = row
    this.#clock = clock
    this.#state = newState(row)
  }

  get state(): RateState {
    return this.#state
  }

  get sessions(): number {
    return this.#sessions
  }

  kept(): number {
    return 0
  }

  get isSingleWaiting(): boolean {
    return false
  }

  now(): number {
    return this.#clock.monotonicNow()
  }

  begin(): PermitEnd {
    this.#state = onStarted(this.#state, this.#row, this.#clock.monotonicNow())
    this.#sessions++
    return () => {
      this.#sessions--
    }
  }

  change(change: RateChange): void {
    this.#state = change(this.#state, this.#clock.monotonicNow())
  }

  note(change: RateNote): void {
    this.#state = change(this.#state)
  }

  watch(): () => void {
    return () => {}
  }
}

/** Answers after which what was heard before counts half: a list comes to other parts of itself. */
export const RECENT_OUTCOMES_MAX = 200

/** Recipients of an operator that were answered for lately. */
export class RecentOutcomes {
  #count = 0
  #refused = 0

  get count(): number {
    return this.#count
  }

  /** One more was answered for. */
  add(isRefused: boolean): void {
    this.#count++
    if (isRefused) this.#refused++
    if (this.#count < RECENT_OUTCOMES_MAX) return
    this.#count /= 2
    this.#refused /= 2
  }

  /** The share that was refused, for whatever reason; all, before anybody was asked. */
  get refusedShare(): number {
    return (this.#refused + 1) / (this.#count + 1)
  }
}

/** Single questions that may go before lists in a row, while a list waits too. */
const SINGLES_IN_A_ROW_MAX = 3

/** Who goes first where people and lists wait for connections to the same operator. */
export class FairWaitQueue {
  #singles = 0
  #lists = 0
  #singlesInARow = 0

  /** One more waits; the function that it gives ends that. */
  wait(single: boolean): () => void {
    this.#count(single, 1)
    return () => this.#count(single, -1)
  }

  /** A single question goes first, as somebody waits for it; but no list waits for ever. */
  isOthers(single: boolean): boolean {
    const isBatchTurn = this.#lists > 0 && this.#singlesInARow >= SINGLES_IN_A_ROW_MAX
    return single ? isBatchTurn : this.#singles > 0 && !isBatchTurn
  }

  began(single: boolean): void {
    this.#singlesInARow = single && this.#lists > 0 ? this.#singlesInARow + 1 : 0
  }

  get isSingleWaiting(): boolean {
    return this.#singles > 0
  }

  #count(single: boolean, change: number) {
    if (single) this.#singles += change
    else this.#lists += change
  }
}
