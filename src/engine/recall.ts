import { Batcher } from '../base/batcher.ts'
import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import { isKept, type Remembered, type ResultMemory } from './memory.ts'

/** Keys of one question to the memory. */
const BATCH_MAX = 500

/**
 * Recalls for many who ask singly: one question at a time, and who comes meanwhile goes with the next.
 * A memory that fails knows nothing, and ends nobody's verification.
 */
export class Recaller {
  readonly #memory: ResultMemory
  readonly #clock: Clock
  readonly #log: Log
  readonly #recalls: Batcher<string, Remembered | null>

  constructor(world: { memory: ResultMemory; clock: Clock; log: Log }) {
    this.#memory = world.memory
    this.#clock = world.clock
    this.#log = world.log
    this.#recalls = new Batcher({
      ...{ clock: world.clock, sizeMax: BATCH_MAX, keyOf: key => key },
      run: keys => this.#known(keys),
    })
  }

  /** The answer that is kept for this address, fresh or not; else null. Never rejects. */
  recall(key: string): Promise<Remembered | null> {
    return this.#recalls.add(key)
  }

  /** Never rejects. */
  async remember(entries: ReadonlyMap<string, Remembered>): Promise<void> {
    try {
      if (entries.size > 0) await this.#memory.remember(entries)
    } catch (error) {
      this.#log.warn('answers could not be remembered', { error: messageOf(error) })
    }
  }

  async #known(keys: readonly string[]): Promise<(Remembered | null)[]> {
    try {
      const now = this.#clock.now()
      const known = await this.#memory.recall(keys)
      return keys.map(key => {
        const remembered = known.get(key)
        return remembered !== undefined && isKept(remembered, now) ? remembered : null
      })
    } catch (error) {
      this.#log.warn('answers could not be recalled', { error: messageOf(error) })
      return keys.map(() => null)
    }
  }
}
