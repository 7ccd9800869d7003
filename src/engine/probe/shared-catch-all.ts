import { Batcher } from '../../platform/batcher.ts'
import { type Clock, SECOND, sleep } from '../../platform/clock.ts'

/** The catch-all result of a domain, and how long it stays valid, in ms. */
export type KnownCatchAll = { readonly catchAll: boolean; readonly keepMs: number }

/** Catch-all results shared by several processes. */
export interface CatchAllStore {
  /** Returns the results for at most `DOMAINS_MAX` domains. Rejects if the store cannot be read. */
  get(domains: readonly string[]): Promise<ReadonlyMap<string, KnownCatchAll>>
  /** Shares a result with all processes. Never throws: a result that cannot be written is lost. */
  set(domain: string, known: KnownCatchAll): void
}

/** The most domains per query of the store. */
export const DOMAINS_MAX = 500
/** A shared result saves one RCPT, which is not worth a longer wait. */
const TIMEOUT_MS = SECOND
/** How long no query is sent after a failed one. */
const RETRY_AFTER_FAILURE_MS = 10 * SECOND

/** Loads shared results in batches, one query at a time; later requests wait for the next batch. */
export class SharedCatchAllLoader {
  readonly #clock: Clock
  readonly #batcher: Batcher<string>
  #pausedUntil = Number.NEGATIVE_INFINITY

  constructor(
    clock: Clock,
    store: CatchAllStore,
    onFound: (domain: string, known: KnownCatchAll) => void,
  ) {
    this.#clock = clock
    this.#batcher = new Batcher({
      clock,
      sizeMax: DOMAINS_MAX,
      keyOf: domain => domain,
      async run(domains) {
        for (const [domain, found] of await store.get(domains)) onFound(domain, found)
      },
      onFailure: () => {
        this.#pausedUntil = clock.monotonicNow() + RETRY_AFTER_FAILURE_MS
        return 'reject'
      },
    })
  }

  /** Resolves when the results are loaded, or after a timeout. Never rejects. */
  async load(domains: readonly string[]): Promise<void> {
    if (this.#clock.monotonicNow() < this.#pausedUntil) return
    const timer = new AbortController()
    const timeout = sleep(this.#clock, TIMEOUT_MS, timer.signal)
    const loaded = Promise.allSettled(domains.map(domain => this.#batcher.add(domain)))
    await Promise.race([loaded, timeout])
    timer.abort()
  }
}
