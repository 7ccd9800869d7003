import { type Answer, classify } from '../../smtp/answer.ts'
import { type Broken, isBroken } from '../../smtp/connection.ts'
import type { Reply } from '../../smtp/reply.ts'
import type { Session } from '../../smtp/session.ts'
import type { ClaimedTurn, KnownTurn } from '../catch-all.ts'
import { catchAllKey, type Question } from '../plan.ts'
import type { Lane } from './lane.ts'
import { answerTo, isTooMany } from './outcome.ts'

/** The reply to an unguessable recipient that went out with the real one. */
export type EarlyReply = { readonly turn: ClaimedTurn; readonly reply: Reply | Broken }

/** How the domain of accepted recipients is tested. */
export type CatchAllTest = {
  /** Recipients in the transaction at hand. */
  readonly inTransaction: number
  /** Nothing else will be asked in this connection. */
  readonly isLast: boolean
  readonly early: EarlyReply | null
  /** No more than is known already: the connection is left. */
  readonly isLeaving: boolean
}

/** Asks about one recipient. `isLast`: nothing else will be asked. `over`: QUIT was said before. */
type Ask = (to: string, isLast: boolean) => Promise<Reply | Broken | 'over'>

export type AskRandom = {
  /** In the transaction at hand, whose replies are not there yet. */
  readonly beside: (to: string) => Promise<Reply | Broken>
  /** In the transaction at hand. */
  readonly here: Ask
  /** In a transaction of its own. */
  readonly alone: Ask
  /** Notes that a transaction takes no more than `taken` recipients. */
  readonly noteFull: (taken: number) => void
}

/** The unguessable recipient of one conversation: a domain that takes it takes everything. */
export class Unguessable<Q extends Question> {
  readonly #lane: Lane<Q>
  readonly #session: Session
  readonly #ask: AskRandom

  constructor(lane: Lane<Q>, session: Session, ask: AskRandom) {
    this.#lane = lane
    this.#session = session
    this.#ask = ask
  }

  /** The turn to ask about the domain at once: one recipient, pipelining, room for two, and nothing known. */
  turnBeside(batch: readonly Q[]): ClaimedTurn | null {
    const { single, catchAll } = this.#lane.options
    const [question] = batch
    if (!single || question === undefined || batch.length > 1) return null
    if (question.catchAll !== null || this.#lane.transactionMax === 1) return null
    return this.#session.pipelining ? catchAll.claim(catchAllKey(question), true) : null
  }

  /** Whether nobody needs to be asked about the domain of this question. */
  isKnown(question: Question): boolean {
    const { catchAll, single } = this.#lane.options
    return question.catchAll !== null || catchAll.isTold(catchAllKey(question), single)
  }

  /** One of the domain of this question, in the transaction at hand. */
  rcpt(question: Q): Promise<Reply | Broken> {
    return this.#ask.beside(this.#nameAt(question))
  }

  /**
   * Whether the domain takes everything: known before, told by the reply at hand, or asked now.
   * `over`: it could not be asked, as QUIT was said.
   */
  async catchAllOf(question: Q, test: CatchAllTest): Promise<KnownTurn | 'over'> {
    const { early, isLeaving } = test
    if (question.catchAll !== null) return { known: question.catchAll, inStep: null }
    const { catchAll: memory, signal, single } = this.#lane.options
    const key = catchAllKey(question)
    if (isLeaving && early === null) return { known: memory.recall(key), inStep: null }
    const turn = early?.turn ?? (await memory.take(key, signal, single))
    if ('known' in turn) return turn
    const told = await this.#decide(turn, () => this.#replyFor(question, test))
    return told.reply === 'over' ? 'over' : told
  }

  /** Asks about the domain in the transaction at hand; `answer` is null where another lane has asked. */
  async test(question: Q): Promise<KnownTurn & { readonly answer: Answer | null }> {
    const { catchAll: memory, signal, single } = this.#lane.options
    const turn = await memory.take(catchAllKey(question), signal, single)
    if ('known' in turn) return { ...turn, answer: null }
    const { known, inStep, reply } = await this.#decide(turn, () => this.rcpt(question))
    return { known, inStep, answer: answerTo('rcpt', reply) }
  }

  /** Asks about the domain and settles the turn with what the reply means, also when asking throws. */
  async #decide<R extends Reply | Broken | 'over'>(
    turn: ClaimedTurn,
    ask: () => Promise<R>,
  ): Promise<KnownTurn & { readonly reply: R }> {
    const { inStep } = this.#session
    let known: boolean | null = null
    try {
      const reply = await ask()
      known = reply === 'over' ? null : catchAllFrom(reply)
      return { known, inStep, reply }
    } finally {
      turn.settle(known, inStep)
    }
  }

  /**
   * Shows the random recipient to a server that defers recipients at first, so that it is known when
   * the retry comes and both get a real answer then. What the server says now counts, too.
   */
  async introduce(
    question: Q,
    test: Pick<CatchAllTest, 'inTransaction' | 'isLast'>,
  ): Promise<void> {
    if (question.catchAll !== null) return
    const { catchAll, world } = this.#lane.options
    const key = catchAllKey(question)
    const turn = catchAll.claimIntroduction(key, world.egress.name, world.random)
    const how = { ...test, early: null, isLeaving: false }
    if (turn !== null) await this.#decide(turn, () => this.#replyFor(question, how))
  }

  /** In the transaction at hand, be it early or now; in one of its own when that one is full. */
  async #replyFor(
    question: Q,
    { inTransaction, isLast, early }: CatchAllTest,
  ): Promise<Reply | Broken | 'over'> {
    const to = this.#nameAt(question)
    const hasRoom = early === null && this.#lane.transactionMax > inTransaction
    const reply = hasRoom ? await this.#ask.here(to, isLast) : (early?.reply ?? null)
    if (reply === 'over') return reply
    if (reply !== null) {
      if (!isTooMany(answerTo('rcpt', reply))) return reply
      this.#ask.noteFull(inTransaction)
    }
    return this.#ask.alone(to, isLast)
  }

  #nameAt(question: Q): string {
    const { catchAll, world } = this.#lane.options
    const name = catchAll.nameFor(catchAllKey(question), world.random)
    return `${name}@${question.address.domain.ascii}`
  }
}

/** A refused or failed question about a name that nobody has is no evidence (neither yes nor no). */
function catchAllFrom(outcome: Reply | Broken): boolean | null {
  if (isBroken(outcome)) return null
  const answer = classify('rcpt', outcome)
  // `restricted` is a refusal too: of us, or of the name, nobody knows.
  if (answer.kind === 'accepted') return answer.why === 'restricted' ? null : true
  return answer.kind === 'rejected' && answer.why !== 'full' ? false : null
}
