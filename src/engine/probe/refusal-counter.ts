import type { RateController } from '../rate-control/controller.ts'

/**
 * Refused commands after which a list leaves the connection. Postfix delays each reply by one
 * second from the eleventh error on (smtpd_soft_error_limit); a refused MAIL and a random recipient
 * add two.
 */
const REFUSALS_MAX = 8
/**
 * Refused commands that one connection allows: Postfix disconnects at 20 (smtpd_hard_error_limit).
 */
const REFUSALS_TOLERATED = 20

/** Counts the refused commands of one connection, whatever the reason. */
export class RefusalCounter {
  readonly #rateController: RateController
  readonly #max: number
  readonly #isKnown: boolean
  #count = 0

  /** `limit`: how many refusals the host is known to allow in each connection, or infinite. */
  constructor(rateController: RateController, limit: number) {
    this.#rateController = rateController
    this.#max = Math.min(REFUSALS_MAX, limit)
    this.#isKnown = limit < REFUSALS_MAX
  }

  add(count: number): void {
    this.#count += count
  }

  get count(): number {
    return this.#count
  }

  get isReached(): boolean {
    return this.#count >= this.#max
  }

  /** The most recipients for one write, so that refusals stay below the limit. */
  get batchMax(): number {
    const left = this.#max - this.#count
    // All of them may be refused.
    if (this.#isKnown) return Math.max(1, left)
    const expected = Math.floor(left / this.#rateController.refusedShare)
    return Math.max(1, Math.min(REFUSALS_TOLERATED - this.#count, expected))
  }

  /**
   * How many more recipients the connection is expected to reach before the limit; null while too
   * little is known.
   */
  get expectedLeft(): number | null {
    const { expectedRefusedShare: share } = this.#rateController
    return share === null ? null : Math.max(0, Math.floor((this.#max - this.#count) / share))
  }
}
