import { Batcher } from '../../platform/batcher.ts'
import { type Clock, SECOND, sleep } from '../../platform/clock.ts'

/** What is known of a domain, and how long it may still be believed, in ms. */
export type KnownCatchAll = { readonly catchAll: boolean; readonly keepMs: number }

/** What several processes know in common of domains. */
export interface CatchAllStore {
  /** What is known of these; at most `DOMAINS_MAX` of them. Rejects where it cannot be read now. */
  get(domains: readonly string[]): Promise<ReadonlyMap<string, KnownCatchAll>>
  /** Told to all soon. Never throws: what cannot be written is lost. */
  set(domain: string, known: KnownCatchAll): void
}

/** Domains of one question to the store. */
export const DOMAINS_MAX = 500
/** To know it saves a question; it is not worth a longer wait. */
const TIMEOUT_MS = SECOND
/** After a question that failed nothing is asked for so long. */
const AWAY_MS = 10 * SECOND

/** Learns for many who ask for a few domains each: one question at a time, and who comes meanwhile goes with the next. */
export class SharedCatchAllLoader {
  readonly #clock: Clock
  readonly #questions: Batcher<string>
  #awayUntil = Number.NEGATIVE_INFINITY

  constructor(
    clock: Clock,
    store: CatchAllStore,
    onFound: (domain: string, known: KnownCatchAll) => void,
  ) {
    this.#clock = clock
    this.#questions = new Batcher({
      ...{ clock, sizeMax: DOMAINS_MAX, keyOf: domain => domain },
      async run(domains) {
        for (const [domain, found] of await store.get(domains)) onFound(domain, found)
      },
      onFailure: () => {
        this.#awayUntil = clock.monotonicNow() + AWAY_MS
        return 'reject'
      },
    })
  }

  /** Resolves when it is known what others found, or when that takes too long. Never rejects. */
  async learn(domains: readonly string[]): Promise<void> {
    if (this.#clock.monotonicNow() < this.#awayUntil) return
    const inTime = new AbortController()
    const late = sleep(this.#clock, TIMEOUT_MS, inTime.signal)
    const learned = Promise.allSettled(domains.map(domain => this.#questions.add(domain)))
    await Promise.race([learned, late])
    inTime.abort()
  }
}
