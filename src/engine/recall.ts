import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../base/clock.ts'
import { messageOf } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import { isKept, type Remembered, type ResultMemory } from './memory.ts'

/** Keys of one question to the memory. */
const BATCH_MAX = 500

type Waiting = { readonly key: string; readonly resolve: (known: Remembered | null) => void }

/**
 * Recalls for many who ask singly: one question at a time, and who comes meanwhile goes with the next.
 * A memory that fails knows nothing, and ends nobody's verification.
 */
export class Recaller {
  readonly #memory: ResultMemory
  readonly #clock: Clock
  readonly #log: Log
  #waiting: Waiting[] = []
  #asking = false

  constructor(world: { memory: ResultMemory; clock: Clock; log: Log }) {
    this.#memory = world.memory
    this.#clock = world.clock
    this.#log = world.log
  }

  /** The answer that is kept for this address, fresh or not; else null. Never rejects. */
  recall(key: string): Promise<Remembered | null> {
    return new Promise(resolve => {
      this.#waiting.push({ key, resolve })
      if (!this.#asking) void this.#ask()
    })
  }

  /** Never rejects. */
  async remember(entries: ReadonlyMap<string, Remembered>): Promise<void> {
    try {
      if (entries.size > 0) await this.#memory.remember(entries)
    } catch (error) {
      this.#log.warn('answers could not be remembered', { error: messageOf(error) })
    }
  }

  async #ask(): Promise<void> {
    this.#asking = true
    while (this.#waiting.length > 0) {
      // A turn of the event loop: the answers of the DNS that came together go together.
      await setImmediate()
      const batch = this.#waiting.splice(0, BATCH_MAX)
      const known = await this.#known(batch.map(({ key }) => key))
      for (const { key, resolve } of batch) resolve(known.get(key) ?? null)
    }
    this.#asking = false
  }

  async #known(keys: readonly string[]): Promise<ReadonlyMap<string, Remembered>> {
    try {
      const now = this.#clock.now()
      const known = await this.#memory.recall([...new Set(keys)])
      return new Map([...known].filter(([, remembered]) => isKept(remembered, now)))
    } catch (error) {
      this.#log.warn('answers could not be recalled', { error: messageOf(error) })
      return new Map()
    }
  }
}
