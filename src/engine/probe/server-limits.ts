import { type Clock, HOUR } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'

const HOSTS_MAX = 20_000
/** How long transactions or connections stay limited. */
const LIMITS_MS = HOUR

/**
 * Catch-all tests in a row, each over a connection of its own, after which a host counts as one that
 * does not answer them.
 */
const UNANSWERED_TESTS_MAX = 3

/** How many recipients were named in a connection, and how many commands were refused. */
export type ConnectionCounts = { readonly recipients: number; readonly refusals: number }

/**
 * Why a host defers recipients. `limit`: it would defer anyone. `recipients`: it greylists these, or
 * their mailboxes are busy.
 */
type DeferralMeaning = 'limit' | 'recipients' | 'unclear'

/** The number of no connection. */
const NONE = -1

const UNLIMITED: ConnectionCounts = {
  recipients: Number.POSITIVE_INFINITY,
  refusals: Number.POSITIVE_INFINITY,
}

/** The limits of MX hosts for each transaction and each connection, learned from their replies. */
export class ServerLimits {
  readonly #recipientsMax: TtlMap<{ max: number }>
  /** Why hosts deferred recipients after they had answered others. */
  readonly #deferrals: TtlMap<{ meaning: DeferralMeaning }>
  /** The catch-all tests without a reply since the last answered one, and when the last one ended. */
  readonly #unansweredTests: TtlMap<{ count: number; endedAt: number }>
  readonly #clock: Clock
  /** The counts of the last connection in which the host asked to slow down, and its limits. */
  readonly #full: TtlMap<{ counts: ConnectionCounts; limits: ConnectionCounts }>

  constructor(clock: Clock) {
    this.#clock = clock
    this.#unansweredTests = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#recipientsMax = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#deferrals = new TtlMap({ sizeMax: HOSTS_MAX, clock })
    this.#full = new TtlMap({ sizeMax: HOSTS_MAX, clock })
  }

  /** Records that the host accepts at most `max` recipients per transaction. */
  noteRecipientsMax(host: string, max: number): void {
    this.#recipientsMax.set(host, { max }, LIMITS_MS)
  }

  /** The recipients that the host accepts per transaction; infinite if no limit is known. */
  recipientsMax(host: string): number {
    return this.#recipientsMax.get(host)?.max ?? Number.POSITIVE_INFINITY
  }

  /**
   * Records what a connection had taken when the host asked to slow down. The host may have counted
   * the recipients of a minute, but the same number in two connections in a row is its limit for
   * each: of recipients, or of refused ones.
   */
  noteFull(host: string, counts: ConnectionCounts): void {
    const before = this.#full.get(host)?.counts
    let limits = UNLIMITED
    if (counts.recipients === before?.recipients)
      limits = { ...UNLIMITED, recipients: counts.recipients }
    else if (counts.refusals === before?.refusals && counts.refusals > 0)
      limits = { ...UNLIMITED, refusals: counts.refusals }
    this.#full.set(host, { counts, limits }, LIMITS_MS)
  }

  /** Records the counts of a connection that met no limit: any limit is higher than they are. */
  noteTaken(host: string, taken: ConnectionCounts): void {
    const full = this.#full.get(host)
    if (full === undefined) return
    const recipients = taken.recipients > full.counts.recipients ? NONE : full.counts.recipients
    const refusals = taken.refusals > full.counts.refusals ? NONE : full.counts.refusals
    this.#full.set(host, { ...full, counts: { recipients, refusals } }, LIMITS_MS)
  }

  /** The known limits of the host for each connection; infinite if there are none. */
  ofConnection(host: string): ConnectionCounts {
    return this.#full.get(host)?.limits ?? UNLIMITED
  }

  /**
   * Records that a host rejects every recipient after some number of refusals in a connection; it
   * accepted one after `max` of them.
   */
  noteRefusalsMax(host: string, max: number): void {
    const limits = { ...UNLIMITED, refusals: Math.max(1, max) }
    this.#full.set(host, { counts: limits, limits }, LIMITS_MS)
  }

  /** Records why the host deferred recipients after it had answered others. */
  noteDeferral(host: string, meaning: DeferralMeaning): void {
    if (this.deferralMeaning(host) !== 'limit') this.#deferrals.set(host, { meaning }, LIMITS_MS)
  }

  /** Returns why the host defers recipients; null if it has deferred none. */
  deferralMeaning(host: string): DeferralMeaning | null {
    return this.#deferrals.get(host)?.meaning ?? null
  }

  /**
   * Records that a host went silent or closed the connection at a random recipient, over a connection
   * that was opened at `startedAt`, monotonic ms. Those that fail together count once, since the
   * cause may be an outage.
   */
  noteUnansweredTest(host: string, startedAt: number): void {
    const { count, endedAt } = this.#unansweredTests.get(host) ?? NO_TESTS
    if (startedAt < endedAt) return
    const now = this.#clock.monotonicNow()
    this.#unansweredTests.set(host, { count: count + 1, endedAt: now }, LIMITS_MS)
  }

  /** Records that a host answered a random recipient. */
  noteAnsweredTest(host: string): void {
    this.#unansweredTests.delete(host)
  }

  /** Whether the host does not answer catch-all tests, so that they only cost time. */
  ignoresTests(host: string): boolean {
    return this.#countUnansweredTests(host) >= UNANSWERED_TESTS_MAX
  }

  /**
   * Whether a catch-all test may follow other recipients of a connection. The last test before the
   * host counts as one that does not answer them must not, since it could limit recipients.
   */
  mayTestAfterOthers(host: string): boolean {
    return this.#countUnansweredTests(host) < UNANSWERED_TESTS_MAX - 1
  }

  #countUnansweredTests(host: string): number {
    return this.#unansweredTests.get(host)?.count ?? 0
  }
}

const NO_TESTS = { count: 0, endedAt: Number.NEGATIVE_INFINITY }
