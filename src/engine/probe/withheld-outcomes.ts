import { orOnAbort } from '../../platform/error.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { ConnectionInfo } from './mx-group-probe.ts'

export type WithheldOutcome<Q> = {
  readonly question: Q
  readonly answer: RecipientOutcome
  readonly facts: ConnectionInfo
  /**
   * Whether the replies are in step that told whether the domain takes everything; null: they are.
   */
  readonly catchAllInStep: Promise<boolean> | null
}

/**
 * The answers of one connection. RSET, MAIL and RCPT all answer 250: after one reply too many
 * each command gets the reply to the command before it, and nothing shows it until QUIT gets
 * another reply than 221. No answer is told before that.
 */
export class WithheldOutcomes<Q> {
  readonly #answers: WithheldOutcome<Q>[] = []

  add(answer: WithheldOutcome<Q>): void {
    this.#answers.push(answer)
  }

  /**
   * Waits until it is known whether the replies were in step. Tells the answers that hold, and
   * returns the questions to ask again. After a surplus reply no answer holds: the shift may have
   * begun with any command. After a missing one all hold that are here: a loss stalls the group of
   * commands in which it happens, and answers are added for groups that had all their replies.
   */
  async conclude(
    inStep: Promise<boolean>,
    signal: AbortSignal,
    notify: (answer: WithheldOutcome<Q>) => void,
  ): Promise<Q[]> {
    const isInStep = await inStep
    if (!isInStep) return this.#answers.map(({ question }) => question)
    const again: Q[] = []
    // Another connection may have asked about a domain, and may not be over yet.
    const known = new Map<Promise<boolean> | null, boolean | null>([
      [null, true],
      [inStep, true],
    ])
    for (const withheld of this.#answers) {
      const { catchAllInStep, facts, question } = withheld
      if (catchAllInStep !== null && !known.has(catchAllInStep)) {
        known.set(catchAllInStep, await orOnAbort(catchAllInStep, signal, null))
      }
      const isSure = known.get(catchAllInStep)
      if (isSure === false) again.push(question)
      else notify(isSure ? withheld : { ...withheld, facts: { ...facts, catchAll: null } })
    }
    return again
  }
}
