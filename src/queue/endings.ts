import { type Clock, sleep } from '../base/clock.ts'
import { messageOf } from '../base/error.ts'
import type { LogFields } from '../base/log.ts'
import type { Claim, Entries } from './entries.ts'

/** How a run ended; times are ticks of the clock, as what is to be written may have to wait for the database. */
export type Ending = {
  readonly claim: Claim
  /** When the entry is due again; null: it is done with. */
  readonly dueAt: number | null
  /** When it is due by what was put here while it ran. */
  readonly putAt: number | null
}

export type EndingsParts = {
  readonly entries: Entries
  readonly clock: Clock
  readonly complain: (message: string, fields: LogFields) => void
  readonly stopping: AbortSignal
  /** Wait after a write failed. */
  readonly retryMs: number
  /** An entry is due again in so many ms. */
  readonly onBack: (waitMs: number) => void
  /** Its claim did not hold any more. */
  readonly onLost: (ending: Ending) => void
}

/** Written by one statement. */
const BATCH_MAX = 500

/** Writes how runs ended, many at once when they come so; what cannot be written now waits. */
export class Endings {
  readonly #parts: EndingsParts
  #waiting: Ending[] = []
  #writing: Promise<void> | null = null

  constructor(parts: EndingsParts) {
    this.#parts = parts
  }

  add(ending: Ending): void {
    this.#waiting.push(ending)
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null
    })
  }

  /** When all is written, or, once we stop, was tried. */
  async quiet(): Promise<void> {
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    const { clock, complain, stopping, retryMs } = this.#parts
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, BATCH_MAX)
      try {
        await this.#write(batch)
      } catch (error) {
        complain('what was done cannot be written now; that is tried again', {
          error: messageOf(error),
        })
        // Nobody waits for the database when the process ends: the entries run elsewhere soon.
        if (stopping.aborted) continue
        this.#waiting.unshift(...batch)
        await sleep(clock, retryMs, stopping)
      }
    }
  }

  async #write(batch: readonly Ending[]): Promise<void> {
    const { entries, clock, onBack, onLost } = this.#parts
    const now = clock.ticks()
    const fates = await entries.end(
      batch.map(({ claim, dueAt }) => ({
        ...{ claim, waitMs: dueAt === null ? null : Math.max(0, dueAt - now) },
      })),
    )
    for (const [n, ending] of batch.entries()) {
      const fate = fates[n]
      if (fate === 'lost') onLost(ending)
      else if (typeof fate === 'number') onBack(fate)
    }
  }
}
