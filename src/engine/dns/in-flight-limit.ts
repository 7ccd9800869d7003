/**
 * The limit at the start. Of 400 queries sent at once, a server with a default receive buffer loses
 * the last third.
 */
const INITIAL = 200
/**
 * Enough for 12,000 queries per second at 50 ms. With 1,000 in flight, UDP lost 288 of 10,000
 * (loopback, Node 24).
 */
const MAX = 600
/** A path that loses one packet in a hundred, whatever the load, keeps half of the initial limit. */
const MIN = 100
/**
 * Resolvers refuse queries above a limit of their own, which other clients share: that of dnsmasq is
 * 150 by default. With so few in flight, a query is refused for another reason.
 */
const MIN_REFUSED = 10
/** Growth per answer: an eighth of the limit per round trip, so queries are not sent in bursts. */
const GROWTH = 1 / 8
/** RFC 5681 §3.1 halves the window of a TCP connection after a loss. */
const REDUCTION = 1 / 2

/**
 * The maximum number of DNS queries in flight. It grows while queries wait and their first packets
 * are answered, and is halved when a packet is lost or a query refused, because the resolver or the
 * path to it has more than it can take.
 */
export class InFlightLimit {
  readonly #max: number
  /** With the fraction of the next query. */
  #limit: number
  #reductions = 0

  /** `max` lowers all limits that are above it. */
  constructor(max = MAX) {
    this.#max = Math.min(MAX, max)
    this.#limit = Math.min(INITIAL, max)
  }

  get value(): number {
    return Math.floor(this.#limit)
  }

  /** How often it was reduced. */
  get reductions(): number {
    return this.#reductions
  }

  /** Records an answer to the first packet of a query while other queries wait. */
  onAnswered(): void {
    this.#limit = Math.min(this.#max, this.#limit + GROWTH)
  }

  /** Records the loss of a query that was sent after so many reductions. */
  onLost(reductions: number): void {
    if (reductions === this.#reductions) this.#reduce(this.#limit * REDUCTION, MIN)
  }

  /**
   * Records that a query was refused that was sent after so many reductions, with `inFlight` queries
   * in flight. Returns true if the limit is lower than when it was sent, so it can be sent again.
   */
  onRefused(reductions: number, inFlight: number): boolean {
    if (reductions < this.#reductions) return true
    if (inFlight <= MIN_REFUSED) return false
    return this.#reduce(Math.min(this.#limit, inFlight) * REDUCTION, MIN_REFUSED)
  }

  /**
   * Queries that were sent before a reduction say nothing about the limit since, so it is reduced
   * once for all of them.
   */
  #reduce(to: number, min: number): boolean {
    const reduced = Math.max(min, to)
    if (reduced >= this.#limit) return false
    this.#limit = reduced
    this.#reductions++
    return true
  }
}
