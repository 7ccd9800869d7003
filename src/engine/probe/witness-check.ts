import type { RecipientLog } from '../learned-replies/recipient-log.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { MxGroupState } from './mx-group-state.ts'
import type { ProbeTarget } from './mx-groups.ts'
import type { ServerKeys, Witness } from './witnesses.ts'

/** From this share of refused recipients on, a connection often ends with three of them. */
const REFUSED_SHARE_OF_DOUBT = 1 / 3

/**
 * Decides for one connection whether a recipient is asked again that its server accepted: after too
 * many unknown recipients, a server may reject everyone for a time.
 */
export class WitnessCheck<Q extends ProbeTarget> {
  readonly #group: MxGroupState<Q>
  readonly #server: ServerKeys
  readonly #log: RecipientLog
  /** The refusals before the last recipient that was accepted; null if none was. */
  #refusalsAtAcceptance: number | null = null

  constructor(group: MxGroupState<Q>, server: ServerKeys, log: RecipientLog) {
    this.#group = group
    this.#server = server
    this.#log = log
  }

  /** The refusals before the last recipient that was accepted; null if none was. */
  get refusalsAtAcceptance(): number | null {
    return this.#refusalsAtAcceptance
  }

  /** Returns that recipient; null if there is none, or if too few were rejected, `more` included. */
  find(more = 0): Witness | null {
    if (this.#log.isShown) return null
    const { egress, isInDoubt } = this.#group
    const rejected = isInDoubt ? Number.POSITIVE_INFINITY : this.#log.rejectedInARow + more
    return egress.witnesses.find(this.#server, rejected)
  }

  /**
   * Whether it is likely to be asked after a batch, so that QUIT waits for its replies. If it turns
   * out later to be needed, the rejections are repeated over another connection.
   */
  isLikely(batchSize: number): boolean {
    const { rateController, options } = this.#group
    const witness = this.find(batchSize)
    if (witness === null) return false
    if (options.single || witness.hasRejectedAll) return true
    return this.find() !== null || rateController.refusedShare >= REFUSED_SHARE_OF_DOUBT
  }

  /** Records a reply, after so many refusals of this connection. */
  add(domain: string, recipient: string, answer: RecipientOutcome, refusals: number): void {
    const { witnesses } = this.#group.egress
    if (answer.kind === 'rejected') witnesses.noteRejected(this.#server)
    if (!this.#log.add(domain, recipient, answer)) return
    witnesses.noteAccepted(this.#server, domain, recipient)
    this.#refusalsAtAcceptance = refusals
  }

  /**
   * Records the reply to a recipient that was accepted earlier. Returns true if the server rejects
   * it now, and so everyone.
   */
  addRepeated(domain: string, recipient: string, answer: RecipientOutcome, refusals: number) {
    const isDomainKnown = this.#log.has(domain)
    this.add(domain, recipient, answer, refusals)
    // A mailbox can become full at any time, and a host may serve only some domains of its address.
    if (answer.kind !== 'rejected' || answer.why === 'full') return false
    if (answer.why === 'not-hosted' && !isDomainKnown) return false
    this.#log.onWitnessRejected()
    this.#group.egress.witnesses.noteAllRejected(this.#server)
    return true
  }

  /** Ends the check; `isInStep`: the replies belonged to their commands. */
  conclude(isInStep: boolean): void {
    const { witnesses } = this.#group.egress
    if (isInStep) witnesses.store(this.#server)
    else if (this.#refusalsAtAcceptance !== null) witnesses.forget(this.#server)
  }
}
