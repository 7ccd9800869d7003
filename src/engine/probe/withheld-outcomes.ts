import { orOnAbort } from '../../platform/abort.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { ConnectionInfo } from './probe-outcome.ts'

export type WithheldOutcome<Q> = {
  readonly target: Q
  readonly answer: RecipientOutcome
  readonly facts: ConnectionInfo
  /** Whether the replies of the catch-all test were in step; null if they were. */
  readonly catchAllInStep: Promise<boolean> | null
}

/**
 * The answers of one connection, withheld until QUIT is answered. RSET, MAIL and RCPT all answer
 * 250: after a surplus reply each command gets the reply to the one before it, and nothing shows
 * this until QUIT gets a reply other than 221.
 */
export class WithheldOutcomes<Q> {
  readonly #answers: WithheldOutcome<Q>[] = []

  add(answer: WithheldOutcome<Q>): void {
    this.#answers.push(answer)
  }

  some(predicate: (answer: WithheldOutcome<Q>) => boolean): boolean {
    return this.#answers.some(predicate)
  }

  /**
   * Waits until it is known whether the replies were in step. Emits the valid answers and returns
   * the targets to retry. After a surplus reply no answer is valid, because the shift may have
   * started at any command. After a missing reply all answers here are valid: a loss stalls its own
   * group of commands, and answers are added only for groups that had all their replies.
   */
  async conclude(
    inStep: Promise<boolean>,
    signal: AbortSignal,
    notify: (answer: WithheldOutcome<Q>) => void,
  ): Promise<Q[]> {
    const isInStep = await inStep
    if (!isInStep) return this.#answers.map(({ target }) => target)
    const retried: Q[] = []
    // Another connection may have tested a domain and may still be open.
    const known = new Map<Promise<boolean>, boolean | null>()
    for (const withheld of this.#answers) {
      const { catchAllInStep, facts, target } = withheld
      if (catchAllInStep === null || catchAllInStep === inStep) {
        notify(withheld)
        continue
      }
      if (!known.has(catchAllInStep)) {
        known.set(catchAllInStep, await orOnAbort(catchAllInStep, signal, null))
      }
      const isSure = known.get(catchAllInStep)
      if (isSure === false) retried.push(target)
      else notify(isSure ? withheld : { ...withheld, facts: { ...facts, catchAll: null } })
    }
    return retried
  }
}
