import type { Answer } from '../../smtp/answer.ts'
import { orNullOnAbort } from '../catch-all.ts'
import type { Facts } from './lane.ts'

/** What was heard of one question. */
export type Heard<Q> = {
  readonly question: Q
  readonly answer: Answer
  readonly facts: Facts
  /** Whether the replies are in step that told whether the domain takes everything; null: they are. */
  readonly catchAllInStep: Promise<boolean> | null
}

/**
 * The answers of one connection. RSET, MAIL and RCPT all answer 250: after one reply too many each command gets the reply
 * to the one before it, and nothing shows it until QUIT has another reply than 221. So no answer is told before that.
 */
export class Withheld<Q> {
  readonly #heard: Heard<Q>[] = []

  add(heard: Heard<Q>): void {
    this.#heard.push(heard)
  }

  /**
   * When it is known whether the replies were in step: tells the answers that hold, and returns the questions to ask again.
   * Where a reply was missing, what is here was heard in groups of commands that all had their replies, and holds.
   */
  async conclude(
    inStep: Promise<boolean>,
    signal: AbortSignal,
    tell: (heard: Heard<Q>) => void,
  ): Promise<Q[]> {
    const isInStep = await inStep
    if (!isInStep) return this.#heard.map(({ question }) => question)
    const again: Q[] = []
    for (const heard of this.#heard) {
      const { catchAllInStep, facts, question } = heard
      // Another connection may have asked about the domain, and not be over yet.
      const isOthers = catchAllInStep !== null && catchAllInStep !== inStep
      const isSure = isOthers ? await orNullOnAbort(catchAllInStep, signal) : true
      if (isSure === false) again.push(question)
      else tell(isSure ? heard : { ...heard, facts: { ...facts, catchAll: null } })
    }
    return again
  }
}
