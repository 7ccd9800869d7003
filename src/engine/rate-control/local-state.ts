import type { Clock } from '../../platform/clock.ts'
import type { RateLimits } from './controller.ts'
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
