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
  #count = 0

  constructor(rateController: RateController) {
    this.#rateController = rateController
  }

  add(count: number): void {
    this.#count += count
  }

  get isReached(): boolean {
    return this.#count >= REFUSALS_MAX
  }

  /** The most recipients for one write, so that refusals stay below the limit. */
  get batchMax(): number {
    const left = (REFUSALS_MAX - this.#count) / this.#rateController.refusedShare
    return Math.max(1, Math.min(REFUSALS_TOLERATED - this.#count, Math.floor(left)))
  }

  /**
   * How many more recipients the connection is expected to reach before the limit; null while too
   * little is known.
   */
  get expectedLeft(): number | null {
    const { expectedRefusedShare: share } = this.#rateController
    return share === null ? null : Math.max(0, Math.floor((REFUSALS_MAX - this.#count) / share))
  }
}
