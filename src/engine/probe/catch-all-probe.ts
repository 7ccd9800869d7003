import { classifyReply, type RecipientOutcome } from '../smtp/classify-reply.ts'
import { type ConnectionFailure, isFailure } from '../smtp/connection.ts'
import type { Reply } from '../smtp/reply.ts'
import type { Session } from '../smtp/session.ts'
import type { AcquiredLock, KnownCatchAllResult } from './catch-all.ts'
import type { MxGroupProbe } from './mx-group-probe.ts'
import { catchAllKey, type ProbeTarget } from './mx-groups.ts'
import { isTooMany, outcomeFor } from './probe-outcome.ts'

/** The reply to an unguessable recipient that went out with the real one. */
export type PipelinedReply = {
  readonly turn: AcquiredLock
  readonly reply: Reply | ConnectionFailure
}

/** How the domain of accepted recipients is tested. */
export type CatchAllTest = {
  /** Recipients in the transaction at hand. */
  readonly inTransaction: number
  /** Nothing else will be asked in this connection. */
  readonly isLast: boolean
  readonly early: PipelinedReply | null
  /** No more than is known already: the connection is left. */
  readonly isLeaving: boolean
}

/** Asks about one recipient. `isLast`: nothing else will be asked. `over`: QUIT was said before. */
type Probe = (to: string, isLast: boolean) => Promise<Reply | ConnectionFailure | 'over'>

export type ProbeRandom = {
  /** In the transaction at hand, whose replies are not there yet. */
  readonly inBatch: (to: string) => Promise<Reply | ConnectionFailure>
  /** In the transaction at hand. */
  readonly here: Probe
  /** In a transaction of its own. */
  readonly isAlone: Probe
  /** Notes that a transaction takes no more than `taken` recipients. */
  readonly noteFull: (taken: number) => void
}

/** The unguessable recipient of one conversation: a domain that takes it takes everything. */
export class CatchAllProbe<Q extends ProbeTarget> {
  readonly #group: MxGroupProbe<Q>
  readonly #session: Session
  readonly #ask: ProbeRandom

  constructor(group: MxGroupProbe<Q>, session: Session, ask: ProbeRandom) {
    this.#group = group
    this.#session = session
    this.#ask = ask
  }

  /** The turn to ask about the domain at once: one recipient, pipelining, room for two, and nothing known. */
  lockForBatch(batch: readonly Q[]): AcquiredLock | null {
    const { single, catchAll } = this.#group.options
    const [question] = batch
    if (!single || question === undefined || batch.length > 1) return null
    if (question.catchAll !== null || this.#group.transactionMax === 1) return null
    return this.#session.pipelining ? catchAll.lock(catchAllKey(question), true) : null
  }

  /** Whether nobody needs to be asked about the domain of this question. */
  isKnown(question: ProbeTarget): boolean {
    const { catchAll, single } = this.#group.options
    return question.catchAll !== null || catchAll.isNotified(catchAllKey(question), single)
  }

  /** One of the domain of this question, in the transaction at hand. */
  rcpt(question: Q): Promise<Reply | ConnectionFailure> {
    return this.#ask.inBatch(this.#nameAt(question))
  }

  /**
   * Whether the domain takes everything: known before, told by the reply at hand, or asked now.
   * `over`: it could not be asked, as QUIT was said.
   */
  async catchAllOf(question: Q, test: CatchAllTest): Promise<KnownCatchAllResult | 'over'> {
    const { early, isLeaving } = test
    if (question.catchAll !== null) return { known: question.catchAll, inStep: null }
    const { catchAll: cache, signal, single } = this.#group.options
    const key = catchAllKey(question)
    if (isLeaving && early === null) return { known: cache.get(key), inStep: null }
    const turn = early?.turn ?? (await cache.take(key, signal, single))
    if ('known' in turn) return turn
    const notified = await this.#decide(turn, () => this.#replyFor(question, test))
    return notified.reply === 'over' ? 'over' : notified
  }

  /** Asks about the domain in the transaction at hand; `answer` is null where another lane has asked. */
  async test(
    question: Q,
  ): Promise<KnownCatchAllResult & { readonly answer: RecipientOutcome | null }> {
    const { catchAll: cache, signal, single } = this.#group.options
    const turn = await cache.take(catchAllKey(question), signal, single)
    if ('known' in turn) return { ...turn, answer: null }
    const { known, inStep, reply } = await this.#decide(turn, () => this.rcpt(question))
    return { known, inStep, answer: outcomeFor('rcpt', reply) }
  }

  /** Asks about the domain and settles the turn with what the reply means, also when asking throws. */
  async #decide<R extends Reply | ConnectionFailure | 'over'>(
    turn: AcquiredLock,
    ask: () => Promise<R>,
  ): Promise<KnownCatchAllResult & { readonly reply: R }> {
    const { inStep } = this.#session
    let known: boolean | null = null
    try {
      const reply = await ask()
      known = reply === 'over' ? null : catchAllFrom(reply)
      return { known, inStep, reply }
    } finally {
      turn.resolve(known, inStep)
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
    const { catchAll, deps } = this.#group.options
    const key = catchAllKey(question)
    const turn = catchAll.claimIntroduction(key, deps.egress.name, deps.random)
    const how = { ...test, early: null, isLeaving: false }
    if (turn !== null) await this.#decide(turn, () => this.#replyFor(question, how))
  }

  /** In the transaction at hand, be it early or now; in one of its own when that one is full. */
  async #replyFor(
    question: Q,
    { inTransaction, isLast, early }: CatchAllTest,
  ): Promise<Reply | ConnectionFailure | 'over'> {
    const to = this.#nameAt(question)
    const hasRoom = early === null && this.#group.transactionMax > inTransaction
    const reply = hasRoom ? await this.#ask.here(to, isLast) : (early?.reply ?? null)
    if (reply === 'over') return reply
    if (reply !== null) {
      if (!isTooMany(outcomeFor('rcpt', reply))) return reply
      this.#ask.noteFull(inTransaction)
    }
    return this.#ask.isAlone(to, isLast)
  }

  #nameAt(question: Q): string {
    const { catchAll, deps } = this.#group.options
    const name = catchAll.nameFor(catchAllKey(question), deps.random)
    return `${name}@${question.address.domain.ascii}`
  }
}

/** A refused or failed question about a name that nobody has is no evidence (neither yes nor no). */
function catchAllFrom(outcome: Reply | ConnectionFailure): boolean | null {
  if (isFailure(outcome)) return null
  const answer = classifyReply('rcpt', outcome)
  // `restricted` is a refusal too: of us, or of the name, nobody knows.
  if (answer.kind === 'accepted') return answer.why === 'restricted' ? null : true
  return answer.kind === 'rejected' && answer.why !== 'full' ? false : null
}
