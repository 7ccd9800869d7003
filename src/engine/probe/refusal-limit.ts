import type { RateController } from '../rate-control/controller.ts'

/**
 * Refusals after which a connection of a list is left. From eleven on Postfix takes a second over
 * each (smtpd_soft_error_limit); a refused MAIL and an unguessable recipient are two more.
 */
const REFUSALS_MAX = 8
/** Refusals that one connection can bear: at twenty Postfix hangs up (smtpd_hard_error_limit). */
const REFUSALS_BORNE = 20

/** Counts the commands refused in one connection, for whatever reason. */
export class BlockLimit {
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

  /**
   * How many may go out in one write, so that the refusals to be expected among them do not annoy
   * the server.
   */
  get bearable(): number {
    const expected = (REFUSALS_MAX - this.#count) / this.#rateController.refusedShare
    return Math.max(1, Math.min(REFUSALS_BORNE - this.#count, Math.floor(expected)))
  }
}
