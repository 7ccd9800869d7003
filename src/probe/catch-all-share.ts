import { breathe, type Clock, SECOND, sleep } from '../base/clock.ts'

/** What is known of a domain, and how long it may still be believed, in ms. */
export type KnownCatchAll = { readonly catchAll: boolean; readonly keepMs: number }

/** What several processes know in common of domains. */
export interface CatchAllStore {
  /** What is known of these; at most `DOMAINS_MAX` of them. Rejects where it cannot be read now. */
  recall(domains: readonly string[]): Promise<ReadonlyMap<string, KnownCatchAll>>
  /** Told to all soon. Never throws: what cannot be written is lost. */
  remember(domain: string, known: KnownCatchAll): void
}

/** Domains of one question to the store. */
export const DOMAINS_MAX = 500
/** To know it saves a question; it is not worth a longer wait. */
const PATIENCE_MS = SECOND
/** After a question that failed nothing is asked for so long. */
const AWAY_MS = 10 * SECOND

type Batch = { readonly domains: Set<string>; readonly done: Promise<void> }

/** Learns for many who ask for a few domains each: one question at a time, and who comes meanwhile goes with the next. */
export class CatchAllLearner {
  readonly #clock: Clock
  readonly #store: CatchAllStore
  readonly #onFound: (domain: string, known: KnownCatchAll) => void
  #next: Batch | null = null
  #running: Promise<void> = Promise.resolve()
  #awayUntil = Number.NEGATIVE_INFINITY

  constructor(
    clock: Clock,
    store: CatchAllStore,
    onFound: (domain: string, known: KnownCatchAll) => void,
  ) {
    this.#clock = clock
    this.#store = store
    this.#onFound = onFound
  }

  /** Resolves when it is known what others found, or when that takes too long. Never rejects. */
  async learn(domains: readonly string[]): Promise<void> {
    if (this.#clock.ticks() < this.#awayUntil) return
    const asked: Promise<void>[] = []
    for (const domain of domains) {
      const batch = this.#batch()
      batch.domains.add(domain)
      if (asked.at(-1) !== batch.done) asked.push(batch.done)
    }
    const inTime = new AbortController()
    const late = sleep(this.#clock, PATIENCE_MS, inTime.signal)
    await Promise.race([Promise.all(asked), late])
    inTime.abort()
  }

  /** The one that gathers. */
  #batch(): Batch {
    if (this.#next !== null && this.#next.domains.size < DOMAINS_MAX) return this.#next
    const domains = new Set<string>()
    const done = this.#running.then(() => this.#ask(domains))
    this.#running = done
    this.#next = { domains, done }
    return this.#next
  }

  async #ask(domains: Set<string>): Promise<void> {
    // A turn of the event loop: conversations that begin together ask together.
    await breathe()
    if (this.#next?.domains === domains) this.#next = null
    try {
      const known = await this.#store.recall([...domains])
      for (const [domain, found] of known) this.#onFound(domain, found)
    } catch {
      this.#awayUntil = this.#clock.ticks() + AWAY_MS
    }
  }
}
