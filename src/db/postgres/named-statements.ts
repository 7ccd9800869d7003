import { LRUCache } from 'lru-cache'
import { type Clock, SECOND } from '../../platform/clock.ts'

/** A statement that was run so often is one that is run all the time. */
const USES_MIN = 5
/** Each keeps some ten KB on every connection; ours that are run all the time are fewer. */
const NAMES_MAX = 200
/** What is longer than this holds a list that was written out, and comes but once in this length. */
const TEXT_MAX = 4_000
/** Statements whose uses are counted. */
const COUNTED_MAX = 1_000
/**
 * A plan goes by the size that its tables had: one that was made for an empty one looks through the whole of a long list.
 * PostgreSQL itself notices that only when it counts the rows anew, a minute later.
 */
const PLANS_KEPT_MS = 5 * SECOND

/**
 * Statements that are run all the time have a name, by which a connection to PostgreSQL keeps what it understood of them
 * and how it goes about them: to find that out takes longer than most of them do.
 */
export class NamedStatements {
  readonly #clock: Clock
  readonly #names = new Map<string, string>()
  readonly #uses = new LRUCache<string, number>({ max: COUNTED_MAX })
  readonly #plannedAt = new WeakMap<object, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Null: it goes without, and is looked at anew each time. */
  nameOf(text: string): string | null {
    const known = this.#names.get(text)
    if (known !== undefined) return known
    if (this.#names.size >= NAMES_MAX || text.length > TEXT_MAX || !isPlanned(text)) return null
    const uses = (this.#uses.get(text) ?? 0) + 1
    this.#uses.set(text, uses)
    if (uses < USES_MIN) return null
    const name = `ev${this.#names.size}`
    this.#names.set(text, name)
    this.#uses.delete(text)
    return name
  }

  /** Whether a connection has kept its plans for so long that it should forget them: whoever is told so does it. */
  shouldForgetPlans(connection: object): boolean {
    const now = this.#clock.monotonicNow()
    const plannedAt = this.#plannedAt.get(connection)
    if (plannedAt !== undefined && now - plannedAt < PLANS_KEPT_MS) return false
    this.#plannedAt.set(connection, now)
    return plannedAt !== undefined
  }
}

/** PostgreSQL makes a plan for it, and for it alone. */
const isPlanned = (text: string) =>
  /^\s*(select|insert|update|delete|with)\b/i.test(text) && !text.includes(';')
