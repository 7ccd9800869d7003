import type { Clock } from '../../base/clock.ts'
import type { PaceRow } from '../pace.ts'
import type { End, PaceKeeper } from '../pace-share.ts'
import { newState, type PaceChange, type PaceNote, type PaceState, started } from './rules.ts'

/** A pace that nobody else goes by, in the ticks of the clock. */
export class OwnPace implements PaceKeeper {
  readonly #row: PaceRow
  readonly #clock: Clock
  #state: PaceState
  #sessions = 0

  constructor(row: PaceRow, clock: Clock) {
    this.#row = row
    this.#clock = clock
    this.#state = newState(row)
  }

  get state(): PaceState {
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
    return this.#clock.ticks()
  }

  begin(): End {
    this.#state = started(this.#state, this.#row, this.#clock.ticks())
    this.#sessions++
    return () => {
      this.#sessions--
    }
  }

  change(change: PaceChange): void {
    this.#state = change(this.#state, this.#clock.ticks())
  }

  note(change: PaceNote): void {
    this.#state = change(this.#state)
  }

  watch(): () => void {
    return () => {}
  }
}
