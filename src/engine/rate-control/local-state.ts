import type { Clock } from '../../platform/clock.ts'
import type { RateLimits } from './limit-table.ts'
import { newState, onStarted, type RateChange, type RateNote, type RateState } from './rules.ts'
import type { PermitEnd, RateStateHandle } from './shared-state.ts'

/** A rate state of this process only, in monotonic time. */
export class LocalRateState implements RateStateHandle {
  readonly #limits: RateLimits
  readonly #clock: Clock
  #state: RateState
  #sessions = 0

  constructor(limits: RateLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
    this.#state = newState(limits)
  }

  get state(): RateState {
    return this.#state
  }

  get sessions(): number {
    return this.#sessions
  }

  reservedForOthers(): number {
    return 0
  }

  get isSingleWaiting(): boolean {
    return false
  }

  now(): number {
    return this.#clock.monotonicNow()
  }

  acquire(): PermitEnd {
    this.#state = onStarted(this.#state, this.#limits, this.#clock.monotonicNow())
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

/** Outcomes after which older ones count half, because the parts of a list differ. */
export const RECENT_OUTCOMES_MAX = 200

/** Fewer outcomes say too little about the next ones. */
const PLANNED_MIN = 20

/** Counts the recent recipient outcomes of an operator. */
export class RecentOutcomes {
  #count = 0
  #refused = 0

  get count(): number {
    return this.#count
  }

  /** Adds the outcome of one recipient. */
  add(isRefused: boolean): void {
    this.#count++
    if (isRefused) this.#refused++
    if (this.#count < RECENT_OUTCOMES_MAX) return
    this.#count /= 2
    this.#refused /= 2
  }

  /**
   * The share of refused recipients, whatever the reason, estimated high; 1 before the first
   * outcome.
   */
  get refusedShare(): number {
    return (this.#refused + 1) / (this.#count + 1)
  }

  /** The share as it is, to plan with; null before `PLANNED_MIN` outcomes. */
  get expectedRefusedShare(): number | null {
    return this.#count < PLANNED_MIN ? null : this.#refused / this.#count
  }
}
