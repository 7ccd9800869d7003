import type { RecipientLog } from '../learned-replies/recipient-log.ts'
import { classifyReply, isSoftUnknown, type RecipientOutcome } from '../smtp/classify-reply.ts'
import { type ConnectionFailure, isFailure } from '../smtp/connection.ts'
import type { Reply } from '../smtp/reply.ts'
import type { Session } from '../smtp/session.ts'
import type { AcquiredLock, KnownCatchAllResult } from './catch-all.ts'
import type { MxGroupState, SecondLook } from './mx-group-state.ts'
import type { ProbeTarget } from './mx-groups.ts'
import type { OpenSession } from './open-session.ts'
import { isTooMany, outcomeFor } from './probe-outcome.ts'
import type { Transactions } from './transactions.ts'

/** The reply to a random recipient that was pipelined with the real one. */
export type PipelinedReply = {
  readonly lock: AcquiredLock
  readonly reply: Reply | ConnectionFailure
}

/** How to run the catch-all test for the domain of accepted recipients. */
export type CatchAllTest = {
  /** Recipients in the current transaction. */
  readonly recipientCount: number
  /** True if no other recipient follows on this connection. */
  readonly isLast: boolean
  readonly pipelined: PipelinedReply | null
  /** True if the session is ending: only cached results and a pipelined reply are used. */
  readonly isAbandoned: boolean
}

/** A test whose reply is awaited later. */
export type StartedTest = {
  readonly reply: Promise<Reply | ConnectionFailure>
  /** Returns the result; null if the transaction was full, so that no test was made. */
  readonly conclude: (reply: Reply | ConnectionFailure) => KnownCatchAllResult | null
  /** Ends the test without a result. */
  readonly drop: () => void
}

/** Sends RCPT for each of these, and for no other recipient between them. */
type RcptInOrder = (all: readonly string[]) => Promise<readonly (Reply | ConnectionFailure)[]>

/** Runs catch-all tests in one session: a domain that accepts a random recipient accepts all. */
export class CatchAllProbe<Q extends ProbeTarget> {
  readonly #group: MxGroupState<Q>
  readonly #session: Session
  readonly #host: string
  readonly #log: RecipientLog
  readonly #transactions: Transactions
  readonly #rcptInOrder: RcptInOrder
  /** Whether the connection was open when the last random recipient was sent. */
  #wasOpen = false
  /** The last random recipient that was sent, by catch-all key. */
  readonly #sent = new Map<string, string>()
  /**
   * Tests whose reply no rule knows, by catch-all key. The end of the session may explain it, so
   * other sessions wait for that.
   */
  readonly #unexplained = new Map<
    string,
    { readonly lock: AcquiredLock; readonly domain: string }
  >()

  constructor(
    group: MxGroupState<Q>,
    { session, host }: Pick<OpenSession, 'session' | 'host'>,
    log: RecipientLog,
    transactions: Transactions,
    rcptInOrder: RcptInOrder,
  ) {
    this.#group = group
    this.#session = session
    this.#host = host
    this.#log = log
    this.#transactions = transactions
    this.#rcptInOrder = rcptInOrder
  }

  /**
   * Locks the catch-all test so that it can be pipelined with the batch. Returns null unless the
   * batch is one recipient of a single verification, the session pipelines, the transaction has
   * room for two, and the domain is neither known nor being tested.
   */
  lockForBatch(batch: readonly Q[]): AcquiredLock | null {
    const [target] = batch
    if (!this.#group.options.single || target === undefined || batch.length > 1) return null
    if (this.#group.catchAllOf(target) !== null || this.#group.transactionMax === 1) return null
    if (!this.#session.pipelining || !this.#mayTest) return null
    return this.#group.egress.catchAll.lock(this.#keyOf(target), true)
  }

  /** Whether the domain of this target needs no test. */
  isKnown(target: Q): boolean {
    if (this.#group.catchAllOf(target) !== null || !this.#mayTest) return true
    const { egress, options } = this.#group
    const key = this.#keyOf(target)
    return this.#unexplained.has(key) || egress.catchAll.isResolved(key, options.single)
  }

  /** False if no reply to a random recipient after others can be expected. */
  get #mayTest(): boolean {
    return this.#group.egress.limits.mayTestAfterOthers(this.#host)
  }

  /** Sends the random recipient for the domain of this target in the current batch. */
  rcpt(target: Q): Promise<Reply | ConnectionFailure> {
    return this.#transactions.rcpt(this.#randomRecipient(target))
  }

  /**
   * Returns whether the domain is a catch-all: from the cache, from the pipelined reply, or by a
   * test now. Resolves `quit-sent` if it could not be tested because QUIT was sent.
   */
  async determineCatchAll(
    target: Q,
    test: CatchAllTest,
  ): Promise<KnownCatchAllResult | 'quit-sent'> {
    const { pipelined, isAbandoned } = test
    const given = this.#group.catchAllOf(target)
    if (given !== null) return { known: given, inStep: null }
    const { signal, single } = this.#group.options
    const { catchAll: cache } = this.#group.egress
    const key = this.#keyOf(target)
    if (this.#unexplained.has(key)) return { known: null, inStep: null }
    if ((isAbandoned || !this.#mayTest) && pipelined === null)
      return { known: cache.get(key), inStep: null }
    if (pipelined === null) this.#releaseLocks()
    const lock = pipelined?.lock ?? (await cache.acquire(key, signal, single))
    if ('known' in lock) return lock
    const tested = await this.#resolve(lock, target, () => this.#replyFor(target, test))
    return tested.reply === 'quit-sent' ? 'quit-sent' : tested
  }

  /**
   * Starts the test in the current transaction, so that more commands can follow before its reply.
   * Returns null if that is not possible: the domain is known or is being tested, or the transaction
   * is full.
   */
  start(target: Q, recipientCount: number): StartedTest | null {
    const { egress, options } = this.#group
    if (this.#group.catchAllOf(target) !== null) return null
    if (this.#group.transactionMax <= recipientCount || !this.#mayTest) return null
    const key = this.#keyOf(target)
    if (this.#unexplained.has(key)) return null
    const to = this.#randomRecipient(target)
    const lock = egress.catchAll.lock(key, options.single)
    if (lock === null) return null
    const { inStep } = this.#session
    const { transaction } = this.#log
    return {
      reply: this.#transactions.rcpt(to),
      drop: lock.drop,
      conclude: reply => {
        if (isTooMany(outcomeFor('rcpt', reply, { recipient: to }))) {
          lock.drop()
          this.#group.noteTransactionMax(this.#host, recipientCount)
          return null
        }
        const known = this.read(target, reply, transaction)
        this.#finish(lock, target, known)
        return { known, inStep }
      },
    }
  }

  /** Tests the domain in the current transaction; `answer` is null if another session tested it. */
  async test(
    target: Q,
  ): Promise<KnownCatchAllResult & { readonly answer: RecipientOutcome | null }> {
    const { signal, single } = this.#group.options
    this.#releaseLocks()
    const key = this.#keyOf(target)
    const lock = await this.#group.egress.catchAll.acquire(key, signal, single)
    if ('known' in lock) return { ...lock, answer: null }
    const { known, inStep, reply } = await this.#resolve(lock, target, () => this.rcpt(target))
    return { known, inStep, answer: outcomeFor('rcpt', reply) }
  }

  /**
   * Sends the random recipient between two that were accepted, which shows whether its refusal is a
   * block. Does nothing if another session is testing the domain.
   */
  async testBetween({ target, before, after }: SecondLook<Q>): Promise<void> {
    const { catchAll } = this.#group.egress
    const key = this.#keyOf(target)
    const lock = catchAll.lock(key, true)
    if (lock === null && catchAll.get(key) === null) return
    const random = this.#randomRecipient(target)
    let known: boolean | null = null
    try {
      const replies = await this.#rcptInOrder([before, random, after])
      for (const [index, reply] of replies.entries()) {
        if (index === 1) known = this.read(target, reply)
        else this.#note(target, index === 0 ? before : after, reply)
      }
    } finally {
      if (lock !== null) this.#finish(lock, target, known)
    }
  }

  /** Resolves the lock of a test, at the end of the session if only that may explain its reply. */
  #finish(lock: AcquiredLock, target: Q, known: boolean | null) {
    const domain = target.address.domain.ascii
    if (known === null && this.#log.hasRefusalsAt(domain))
      this.#unexplained.set(this.#keyOf(target), { lock, domain })
    else lock.resolve(known, this.#session.inStep)
  }

  /** Call it before waiting for another session, which may wait for a lock of this one. */
  #releaseLocks() {
    for (const { lock } of this.#unexplained.values()) lock.drop()
  }

  /** Ends the tests that waited for the end of the session; `isInStep`: its replies are valid. */
  conclude(isInStep: boolean): void {
    for (const { lock, domain } of this.#unexplained.values()) {
      const known = isInStep ? this.#log.catchAll(domain) : null
      if (known === null) lock.drop()
      else lock.resolve(known)
    }
    this.#unexplained.clear()
  }

  #note({ address }: Q, recipient: string, reply: Reply | ConnectionFailure) {
    if (isFailure(reply)) return
    const client = this.#group.egress.deps.egress
    const answer = outcomeFor('rcpt', reply, { recipient, client })
    this.#log.add(address.domain.ascii, recipient, answer)
  }

  /** Runs the test and resolves the lock with its result, also if the test throws. */
  async #resolve<R extends Reply | ConnectionFailure | 'quit-sent'>(
    lock: AcquiredLock,
    target: Q,
    runTest: () => Promise<R>,
  ): Promise<KnownCatchAllResult & { readonly reply: R }> {
    const { inStep } = this.#session
    let known: boolean | null = null
    try {
      const reply = await runTest()
      known = reply === 'quit-sent' ? null : this.read(target, reply)
      return { known, inStep, reply }
    } finally {
      this.#finish(lock, target, known)
    }
  }

  /**
   * Sends the random recipient to a server that defers new recipients, so that its greylist knows
   * the name at the retry and both get a final reply then. A decisive reply counts now.
   */
  async introduce(target: Q, test: Pick<CatchAllTest, 'recipientCount' | 'isLast'>): Promise<void> {
    if (this.#group.catchAllOf(target) !== null || !this.#mayTest) return
    const { catchAll, deps } = this.#group.egress
    const key = this.#keyOf(target)
    const lock = catchAll.claimIntroduction(key, deps.egress.name, deps.random)
    const full = { ...test, pipelined: null, isAbandoned: false }
    if (lock !== null) await this.#resolve(lock, target, () => this.#replyFor(target, full))
  }

  /** Uses the pipelined reply or the current transaction, or a new one if that is full. */
  async #replyFor(
    target: Q,
    { recipientCount, isLast, pipelined }: CatchAllTest,
  ): Promise<Reply | ConnectionFailure | 'quit-sent'> {
    const to = this.#randomRecipient(target)
    const hasRoom = pipelined === null && this.#group.transactionMax > recipientCount
    const reply = hasRoom
      ? await this.#transactions.rcptUnlessQuit(to, isLast)
      : (pipelined?.reply ?? null)
    if (reply === 'quit-sent') return reply
    if (reply !== null) {
      if (!isTooMany(outcomeFor('rcpt', reply, { recipient: to }))) return reply
      this.#group.noteTransactionMax(this.#host, recipientCount)
    }
    return this.#transactions.rcptInNewTransaction(to, isLast)
  }

  /** Returns the random recipient of this domain that was sent last; '' if none was. */
  recipientFor(target: Q): string {
    return this.#sent.get(this.#keyOf(target)) ?? ''
  }

  #keyOf(target: Q): string {
    return this.#group.catchAllKey(target, this.#host)
  }

  #randomRecipient(target: Q): string {
    const { catchAll, deps } = this.#group.egress
    const key = this.#keyOf(target)
    const recipient = `${catchAll.nameFor(key, deps.random)}@${target.address.domain.ascii}`
    this.#sent.set(key, recipient)
    this.#wasOpen = this.#session.usable
    return recipient
  }

  /**
   * Returns what the reply to the random recipient says about the domain: null for a blocked,
   * deferred or failed RCPT, which is not evidence unless its text is about the recipient.
   */
  read(
    target: Q,
    outcome: Reply | ConnectionFailure,
    transaction = this.#log.transaction,
  ): boolean | null {
    if (isFailure(outcome)) {
      this.#noteUnanswered(outcome)
      return null
    }
    this.#group.egress.limits.noteAnsweredTest(this.#host)
    const domain = target.address.domain.ascii
    const recipient = this.recipientFor(target)
    const answer = classifyReply('rcpt', outcome, {
      recipient,
      client: this.#group.egress.deps.egress,
    })
    this.#log.add(domain, recipient, answer, { isRandom: true, transaction })
    // `restricted` is a refusal too, and leaves open whether it concerns us or the name.
    if (answer.kind === 'accepted') return answer.why === 'restricted' ? null : true
    if (answer.kind === 'rejected') return answer.why === 'full' ? null : false
    // A server that has accepted another recipient here tells them apart.
    if (isSoftUnknown(answer, recipient) && this.#log.hasAccepted(domain)) return false
    return this.#log.catchAll(domain)
  }

  /** Counts a random recipient without a reply. A list waits long enough for a slow refusal. */
  #noteUnanswered({ stage, broken }: ConnectionFailure) {
    const { egress, options, startedAt } = this.#group
    const isSilent =
      this.#wasOpen && stage === 'rcpt' && (broken === 'timeout' || broken === 'closed')
    if (!isSilent || options.single || options.urgent || options.signal.aborted) return
    egress.limits.noteUnansweredTest(this.#host, startedAt)
  }
}
