import { wireAddress } from '../address/address.ts'
import type { RecipientLog } from '../learned-replies/recipient-log.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import { type ConnectionFailure, isFailure } from '../smtp/connection.ts'
import type { Reply } from '../smtp/reply.ts'
import type { Session } from '../smtp/session.ts'
import type { KnownCatchAllResult } from './catch-all.ts'
import {
  CatchAllProbe,
  type CatchAllTest,
  type PipelinedReply,
  type StartedTest,
} from './catch-all-probe.ts'
import type { MxGroupState, SecondLook } from './mx-group-state.ts'
import { needsSmtpUtf8, nextBatch, type ProbeTarget } from './mx-groups.ts'
import { type OpenSession, startTls } from './open-session.ts'
import {
  type ConnectionInfo,
  type Cut,
  cutShort,
  isThrottling,
  isTlsDemand,
  isTooMany,
  noResponse,
  outcomeFor,
  REJECTS_ALL,
} from './probe-outcome.ts'
import { RefusalCounter } from './refusal-counter.ts'
import type { ConnectionCounts } from './server-limits.ts'
import {
  isMailAccepted,
  NO_TRANSACTION,
  namesOther,
  SINGLE_QUIT_TIMEOUT_MS,
  Transactions,
} from './transactions.ts'
import { WitnessCheck } from './witness-check.ts'
import type { AnsweredRecipient } from './witnesses.ts'

/** A session starts no new transaction after this share of its time limit. */
const SESSION_SHARE = 0.5

/** How a session ended. */
export type SmtpProbeEnd = {
  /** The outcome that ended it early; null if it ran to its end. */
  readonly failure: RecipientOutcome | null
  /** Whether it counts as a success once its replies are known to belong to their commands. */
  readonly isClean: boolean
  /** Whether unanswered targets are to be retried at once, with settings that suit this host. */
  readonly isRetried: boolean
}

type AcceptedRecipients<Q> = readonly (readonly [Q, RecipientOutcome])[]

/** A test whose reply is awaited later, and the recipients that wait for it. */
type AcceptedTest<Q> = StartedTest & { readonly accepted: AcceptedRecipients<Q> }

/** The probe of one MX host over one connection: transactions, with RSET between them. */
export class SmtpProbe<Q extends ProbeTarget> {
  readonly #group: MxGroupState<Q>
  readonly #opened: OpenSession
  readonly #session: Session
  readonly #log: RecipientLog
  readonly #transactions: Transactions
  readonly #witnessCheck: WitnessCheck<Q>
  readonly #catchAllProbe: CatchAllProbe<Q>
  readonly #startedAt: number
  /** RCPT commands sent when the current transaction started. */
  #askedBefore = 0
  /** Whether the server asked to slow down after it had replied to recipients of this connection. */
  #isFull = false
  /** Recipients with a reply. */
  #received = 0
  /** A recipient that was accepted, or else rejected, in this connection. */
  #answered: AnsweredRecipient | null = null
  readonly #limits: ConnectionCounts
  readonly #refusals: RefusalCounter
  /** True once no transaction may follow, because of a reply, a limit or a failure. */
  #isEnding = false
  /** True once recipients beyond the expected limit of refusals were returned. */
  #hasReturned = false
  /** True once a recipient was blocked: the session may go on but does not count as a success. */
  #isBlocked = false
  /** True once STARTTLS failed: it is not tried again on this connection. */
  #tlsUnavailable = false
  /** Accepted recipients whose catch-all test has no result yet, while the session goes on. */
  readonly #underTest = new Set<Q>()
  #startedTest: AcceptedTest<Q> | null = null
  /** Accepted recipients whose test found no room, to be repeated at the end of the session. */
  readonly #untested: AcceptedRecipients<Q>[] = []
  /** The outcome that ended the session early. */
  #failure: RecipientOutcome | null = null
  /** True if the host must be retried with other settings, which are known now. */
  #isRetried = false

  constructor(group: MxGroupState<Q>, opened: OpenSession, log: RecipientLog) {
    this.#group = group
    this.#opened = opened
    this.#session = opened.session
    this.#log = log
    this.#witnessCheck = new WitnessCheck(group, group.serverKeys(opened.host, opened.ip), log)
    this.#transactions = new Transactions(opened.session, log, {
      mailFrom: group.egress.deps.egress.mailFrom,
      single: group.options.single,
    })
    this.#catchAllProbe = new CatchAllProbe(group, opened, log, this.#transactions, all =>
      this.#rcptInOrder(all),
    )
    const { limits } = group.egress
    this.#limits = limits.ofConnection(opened.host)
    this.#refusals = new RefusalCounter(group.rateController, this.#limits.refusals)
    this.#startedAt = group.egress.deps.clock.monotonicNow()
    group.reduceBatchSize(limits.recipientsMax(opened.host))
  }

  /** Probes the targets; before them, the domain of a second look. */
  async run(look: SecondLook<Q> | null): Promise<SmtpProbeEnd> {
    try {
      if (look !== null) await this.#catchAllProbe.testBetween(look)
      if (!this.#group.isInDoubt) await this.#askWitness(false)
      while (this.#isProbing && this.#session.usable && this.#canContinue()) {
        await this.#transaction(nextBatch(this.#remaining, this.#batchMax()))
      }
      if (this.#startedTest !== null) await this.#concludeTest(this.#startedTest, true)
      for (const accepted of this.#untested) {
        const isAbandoned = this.#mustStop
        const test = { recipientCount: this.#group.transactionMax, isLast: false, isAbandoned }
        await this.#resolveAccepted(accepted, { ...test, pipelined: null })
      }
      if (this.#log.hasRefusals) await this.#closeSession()
      await this.#askWitness(true)
    } finally {
      this.#startedTest?.drop()
    }
    const isComplete = this.#transactions.hasQuit || this.#session.usable
    return {
      failure: this.#failure,
      isClean: this.#failure === null && !this.#isBlocked && isComplete,
      isRetried: this.#isRetried,
    }
  }

  /** Starts no further transaction. */
  #end(): void {
    this.#isEnding = true
  }

  get #isProbing(): boolean {
    return !this.#isEnding && !this.#transactions.hasQuit
  }

  /** Whether no command can be sent. */
  get #mustStop(): boolean {
    return this.#transactions.hasQuit || !this.#session.usable
  }

  /** The targets without a reply. */
  get #remaining(): Iterable<Q> {
    const { pending } = this.#group
    if (this.#underTest.size === 0) return pending
    return [...pending].filter(target => !this.#underTest.has(target))
  }

  get #remainingCount(): number {
    return this.#group.pending.size - this.#underTest.size
  }

  /**
   * Recipients that this connection may still probe, besides the random one of a catch-all test.
   */
  get #recipientsLeft(): number {
    const [first] = this.#remaining
    const needsTest = first !== undefined && !this.#catchAllProbe.isKnown(first)
    const reserve = needsTest && !this.#isUnderTest(first) ? 1 : 0
    const { recipientsPerSession } = this.#group.rateController.row
    return (
      Math.min(recipientsPerSession, this.#limits.recipients) -
      this.#transactions.recipients -
      reserve
    )
  }

  /** Whether the random recipient for the domain of this target was sent. */
  #isUnderTest(target: Q): boolean {
    const [first] = this.#startedTest?.accepted ?? []
    if (first === undefined) return false
    return first[0].address.domain.ascii === target.address.domain.ascii
  }

  /**
   * The batch size: within the session's limit, and never past the streak limit of unknown users.
   */
  #batchMax(): number {
    const { rateController, options } = this.#group
    // With a limit of one recipient per connection, the random recipient is allowed as a second
    // one.
    const left = Math.max(1, this.#recipientsLeft)
    // Processes that share the state may have reached the limit together; the next unknown user pauses
    // the operator.
    const limit = options.single
      ? left
      : Math.min(Math.max(1, rateController.unknownsLeft), this.#refusals.batchMax)
    return Math.min(this.#group.transactionMax, left, limit)
  }

  /** Sends QUIT, unless it was sent already. Resolves when the connection is closed. */
  quit(): Promise<void> {
    return this.#transactions.quit()
  }

  /**
   * Ends what only the end of the session explains; `isInStep`: its replies belonged to their
   * commands.
   */
  conclude(isInStep: boolean): void {
    this.#catchAllProbe.conclude(isInStep)
    this.#witnessCheck.conclude(isInStep)
    if (!isInStep || this.#isFull) return
    const counts = { recipients: this.#transactions.recipients, refusals: this.#refusals.count }
    this.#group.egress.limits.noteTaken(this.#opened.host, counts)
  }

  #canContinue(): boolean {
    const { rateController, egress, options, timeouts } = this.#group
    const { clock } = egress.deps
    if (this.#remainingCount === 0 || options.drain.aborted) return false
    // The list yields only after a first reply; otherwise it would never make progress.
    if (!options.single && this.#received > 0 && rateController.isRequested) return false
    if (this.#refusals.isReached) return false
    if (this.#transactions.recipients > 0 && this.#recipientsLeft < 1) return false
    return clock.monotonicNow() - this.#startedAt < timeouts.sessionMs * SESSION_SHARE
  }

  /**
   * Asks a recipient again that the domain has accepted if the last replies of the transaction are
   * refusals that no rule knows: a block that began, or a limit that was reached between them,
   * refuses it now. One more recipient than the transaction has room for does no harm.
   */
  async #closeTransaction(domain: string): Promise<void> {
    const { options, transactionMax } = this.#group
    if (options.single || this.#mustStop || transactionMax === 1) return
    const accepted = this.#log.findWitness(domain)
    if (accepted === null) return
    const isLast = this.#remainingCount === 0 && this.#untested.length === 0
    const reply = await this.#transactions.rcptUnlessQuit(accepted, isLast)
    this.#noteRepeated(domain, accepted, reply)
  }

  /**
   * Asks a recipient again of each domain with such refusals, at the end of a session with one
   * recipient per transaction.
   */
  async #closeSession(): Promise<void> {
    if (this.#failure !== null) return
    const open = this.#log.findWitnesses()
    for (const [index, { domain, accepted }] of open.entries()) {
      if (this.#mustStop) return
      const isLast = index === open.length - 1
      const reply = await this.#transactions.rcptInNewTransaction(accepted, isLast)
      this.#noteRepeated(domain, accepted, reply)
    }
  }

  /**
   * Returns a recipient that the domain accepted earlier, to be asked after a single one in the same
   * write; null if the domain has no texts of its own.
   */
  #findEarlier([target, ...others]: readonly Q[]): string | null {
    if (!this.#group.options.single || target === undefined || others.length > 0) return null
    if (this.#group.transactionMax === 1) return null
    const { address } = target
    return this.#log.findEarlier(address.domain.ascii, new Set([wireAddress(address)]))
  }

  /**
   * Asks a recipient again that this server has accepted, if it has rejected several since then: after
   * too many unknown recipients a server may reject everyone for a time.
   */
  async #askWitness(isLast: boolean): Promise<void> {
    const witness = this.#witnessCheck.find()
    if (witness === null || this.#failure !== null) return
    const { isInDoubt, options } = this.#group
    if (this.#transactions.hasQuit && !isInDoubt && !options.single) {
      this.#log.doubtRejections()
      this.#isRetried = true
    }
    if (this.#mustStop) return
    if (this.#transactions.recipients >= this.#limits.recipients) return
    const { domain, recipient } = witness
    const reply = await this.#transactions.rcptInNewTransaction(recipient, isLast)
    this.#noteRepeated(domain, recipient, reply)
  }

  /** Records the reply to a recipient that was accepted earlier. */
  #noteRepeated(domain: string, accepted: string, reply: Reply | ConnectionFailure | 'quit-sent') {
    if (reply === 'quit-sent' || isFailure(reply)) return
    const answer = this.#answerTo(accepted, reply)
    if (this.#group.turnToEquals(this.#opened.host, answer)) {
      this.#log.doubtRejections()
      this.#isRetried = true
      return this.#end()
    }
    const { count } = this.#refusals
    if (!this.#witnessCheck.addRepeated(domain, accepted, answer, count)) return
    const { refusalsAtAcceptance } = this.#witnessCheck
    if (refusalsAtAcceptance !== null)
      this.#group.egress.limits.noteRefusalsMax(this.#opened.host, refusalsAtAcceptance)
    this.#isFull = true
    this.#opened.permit.throttled(null)
    this.#abandon(REJECTS_ALL)
  }

  async #transaction(batch: Q[]): Promise<void> {
    const [first] = batch as [Q, ...Q[]]
    this.#askedBefore = this.#transactions.recipients
    const smtpUtf8 = needsSmtpUtf8(first)
    // Only a pipelined batch may follow a test without its reply.
    const isPipelined = this.#session.pipelining && (!smtpUtf8 || this.#session.offersSmtpUtf8)
    if (this.#startedTest !== null && (first.accepted !== null || !isPipelined))
      await this.#concludeTest(this.#startedTest, true)
    if (first.accepted !== null) return this.#testCatchAll(first)
    if (smtpUtf8 && !this.#session.offersSmtpUtf8) {
      const answer = noResponse('smtputf8', 'mail', 'the server does not offer SMTPUTF8 (RFC 6531)')
      for (const target of batch) this.#resolve(target, answer)
      return
    }
    const mail = this.#session.pipelining ? this.#transactions.start(smtpUtf8) : null
    if (mail === null && !(await this.#startTransaction(smtpUtf8))) return
    const rcpts = this.#transactions.rcpts(batch.map(({ address }) => wireAddress(address)))
    const { clock } = this.#group.egress.deps
    const lock = this.#catchAllProbe.lockForBatch(batch)
    const random = lock === null ? null : this.#catchAllProbe.rcpt(first)
    const accepted = lock === null ? this.#findEarlier(batch) : null
    const again = accepted === null ? null : this.#transactions.rcpt(accepted)
    const isLast = mail !== null && this.#isLast(batch, lock !== null)
    if (isLast) void this.quit()
    try {
      const mailReply = mail === null ? null : await mail
      const replies = await rcpts
      const repliedAt = clock.monotonicNow()
      const tested = lock === null || random === null ? null : { lock, reply: await random }
      const repeated = again === null ? null : await again
      const last = repeated ?? tested?.reply ?? (replies.at(-1) as Reply | ConnectionFailure)
      const cut = mail === null ? null : cutShort(last)
      const answer = mailReply === null ? null : this.#mailAnswer(mailReply)
      if (this.#startedTest !== null) await this.#concludeTest(this.#startedTest, cut === null)
      if (answer !== null) await this.#mailFailed(answer, cut, batch.length)
      else if (cut !== null && !this.#isSlow(cut, replies, repliedAt))
        this.#handlePartialReplies(batch, replies, last)
      else if (this.#isMisordered(batch, replies, tested)) this.#dropReply()
      else {
        await this.#handleReplies(batch, replies, tested)
        if (accepted !== null && repeated !== null)
          this.#noteRepeated(first.address.domain.ascii, accepted, repeated)
      }
      this.#returnExcess()
    } finally {
      lock?.drop()
    }
  }

  /**
   * Returns the recipients that this connection is not expected to reach before its limit of
   * refusals, if another connection may be opened for them now. Once only: later estimates differ
   * by a few recipients, which would each cost a connection.
   */
  #returnExcess() {
    const { expectedLeft } = this.#refusals
    if (!this.#group.canReturn || this.#hasReturned || expectedLeft === null) return
    if (!this.#isProbing || this.#group.rateController.waitMs > 0) return
    this.#hasReturned = true
    const excess = [...this.#remaining].slice(expectedLeft)
    if (excess.length > 0) this.#group.returnTargets(excess)
  }

  /** Runs only the catch-all test, for the recipients of a domain that were accepted earlier. */
  async #testCatchAll(first: Q): Promise<void> {
    const domain = first.address.domain.ascii
    const { host } = this.#opened
    const { catchAll, limits } = this.#group.egress
    const key = this.#group.catchAllKey(first, host)
    const known = catchAll.get(key)
    const isTested = known === null && !limits.ignoresTests(host)
    if (isTested && !(await this.#startTransaction(false))) return
    const tested = isTested
      ? await this.#catchAllProbe.test(first)
      : { known, inStep: null, answer: null }
    const { answer } = tested
    this.#received++
    for (const target of this.#group.pending) {
      const { accepted } = target
      if (accepted === null || target.address.domain.ascii !== domain) continue
      // A backup MX may have accepted it, which this host says nothing about.
      const isSameKey = this.#group.catchAllKey(target, accepted.host) === key
      const facts = this.#testedFacts(isSameKey ? tested.known : null)
      this.#group.resolve(target, accepted.answer, facts, tested.inStep)
    }
    if (answer?.kind === 'no-response') this.#failure = answer
    if (answer === null || !isThrottling(answer)) return
    this.#noteFull(0, this.#refusals.count)
    this.#abandon(answer)
  }

  /**
   * True if no command follows this batch: QUIT then leaves in the same write (RFC 2920 §3.1) and
   * its reply costs no extra round trip. More commands follow if TLS is required but not on, or if
   * the random recipient comes later. A host that demands TLS for the first time, or accepts few
   * recipients per transaction, costs a second connection once an hour.
   */
  #isLast(batch: readonly Q[], isRandomInBatch: boolean): boolean {
    const { hosts, limits, deps, learned } = this.#group.egress
    if (batch.length < this.#remainingCount) return false
    // An accepted recipient may be asked again.
    const [first] = batch
    const hasOwnTexts = first !== undefined && learned.hasOwnTexts(first.address.domain.ascii)
    if (!this.#group.options.single && (hasOwnTexts || this.#log.hasRefusals)) return false
    if (this.#witnessCheck.isLikely(batch.length)) return false
    const { host } = this.#opened
    const meaning = limits.deferralMeaning(host)
    if (!this.#group.options.single && meaning !== null && meaning !== 'recipients') return false
    if (!this.#session.secured && hosts.requiresTls(host, deps.startTls)) return false
    return isRandomInBatch || batch.every(target => this.#catchAllProbe.isKnown(target))
  }

  /** Starts a transaction. Returns false if the batch stays pending or is resolved. */
  async #startTransaction(smtpUtf8: boolean): Promise<boolean> {
    const answer = this.#mailAnswer(await this.#transactions.start(smtpUtf8))
    if (answer === null) return true
    await this.#mailFailed(answer)
    return false
  }

  #answerTo(recipient: string, reply: Reply | ConnectionFailure): RecipientOutcome {
    return outcomeFor('rcpt', reply, { recipient, client: this.#group.egress.deps.egress })
  }

  /** Returns null for a 250, and an outcome for any other reply. */
  #mailAnswer(reply: Reply | ConnectionFailure): RecipientOutcome | null {
    return isMailAccepted(reply) ? null : outcomeFor('mail', reply)
  }

  /**
   * Handles a MAIL that was not accepted. The cause is the sender or the client, so it holds for
   * all remaining recipients. The server has also refused the recipients pipelined `behind` it, or
   * closed the connection. If it went silent, the reply to MAIL may be missing and this one may
   * belong to a recipient.
   */
  async #mailFailed(answer: RecipientOutcome, cut: Cut | null = null, behind = 0): Promise<void> {
    if (answer.kind === 'no-response') {
      this.#failure = answer
      this.#end()
      return
    }
    const isSure = cut === null || (cut === 'closed' && answer.kind !== 'rejected')
    if (!isSure) return void this.#dropReply()
    const { count } = this.#refusals
    this.#refusals.add(1 + behind)
    if (isTlsDemand(answer) && (await this.#upgrade(answer))) return
    this.#end()
    // The first transaction succeeded and a later one failed: the host wants one per connection.
    const isFull = answer.kind !== 'deferred' || isTooMany(answer)
    if (this.#transactions.count > 1 && this.#received > 0 && isFull) return
    if (isThrottling(answer)) this.#noteFull(0, count)
    this.#abandon(answer)
  }

  /**
   * Ends the session because the operator blocks or throttles us, and gives the outcome to all
   * remaining targets. A TLS demand that cannot be met concerns this host only. After a connection
   * that took some recipients, the next one takes more: to the others this was not an attempt.
   */
  #abandon(answer: RecipientOutcome) {
    const { rateController } = this.#group
    const asked = !this.#isFull && !rateController.isServing
    if (answer.kind === 'blocked' && !isTlsDemand(answer)) rateController.refused(answer)
    if (answer.kind === 'deferred') this.#throttled(answer)
    this.#end()
    this.#failure = answer
    this.#group.resolveRemaining(answer, { ...this.facts, asked })
  }

  /**
   * Records that the server asked to slow down, went silent or closed the connection after `replied`
   * recipients of this transaction, and after that many refusals of this connection: it may limit
   * each connection.
   */
  #noteFull(replied: number, refusals: number) {
    const recipients = this.#askedBefore + replied
    if (recipients === 0 || this.#isFull) return
    this.#isFull = true
    this.#group.egress.limits.noteFull(this.#opened.host, { recipients, refusals })
  }

  /** Before RCPT the whole server throttles us, so its IP address slows down too. */
  #throttled(answer: Extract<RecipientOutcome, { kind: 'deferred' }>) {
    const { rateController } = this.#group
    const { stage, retryAfterMs } = answer
    const isOfServer = stage !== 'rcpt'
    rateController.throttled(retryAfterMs, isOfServer ? rateController.otherSessions : 0, answer)
    if (isOfServer) this.#opened.permit.throttled(retryAfterMs)
  }

  /**
   * Starts TLS because the server demands it. Returns true if the demand is handled: the same batch
   * can be retried, or TLS is unavailable for now and all remaining targets are resolved.
   */
  async #upgrade(demand: RecipientOutcome): Promise<boolean> {
    const { deps, hosts } = this.#group.egress
    if (deps.startTls === 'never' || this.#tlsUnavailable) return false
    if (!this.#session.offersStartTls) return false
    hosts.demandsTls(this.#opened.host)
    if (this.#transactions.hasQuit) {
      this.#group.setTlsDemand(demand, this.facts)
      return this.#retry()
    }
    const failure = await startTls(
      this.#session,
      deps,
      this.#opened.host,
      this.#group.options.signal,
    )
    // If TLS fails, the open transaction is unchanged.
    if (this.#session.secured) this.#transactions.startOver()
    if (failure === null) return true
    this.#tlsUnavailable = true
    // After a TLS handshake with a failed EHLO the session cannot continue.
    if (this.#session.secured) this.#end()
    if (failure.kind === 'deferred') {
      this.#abandon(failure)
      return true
    }
    if (failure.kind !== 'no-response') return false
    this.#failure = failure
    // The server can do TLS, so the next connection starts with it.
    return this.#session.secured
  }

  /** Ends this session; unanswered targets are retried on a new connection with other settings. */
  #retry(): true {
    this.#isRetried = true
    this.#end()
    return true
  }

  /**
   * Handles a pipelined group with a missing reply, or one that the server ended with 421. After a
   * missing reply, all later ones are shifted by one command, so none is trusted: these recipients
   * are retried without PIPELINING.
   */
  #handlePartialReplies(
    batch: Q[],
    replies: (Reply | ConnectionFailure)[],
    last: Reply | ConnectionFailure,
  ) {
    for (const [index, target] of batch.entries()) {
      const outcome = replies[index] as Reply | ConnectionFailure
      const answer = this.#answerTo(target.address.text, outcome)
      if (isFailure(outcome)) this.#handleSilence(target, outcome, answer, index)
      else if (outcome.code !== 421 || answer.kind === 'rejected') this.#dropReply()
      else this.#handleClosing(target, answer, index)
    }
    if (isFailure(last)) this.#failure ??= outcomeFor('rcpt', last)
  }

  /**
   * Whether only the random recipient, or the repeated one, has no reply when the time ends, because
   * the server delays it, as Exchange and Courier delay each refusal. The other replies belong to
   * their commands: after a missing reply, that to QUIT would have arrived in its place, and at once.
   */
  #isSlow(cut: Cut, replies: readonly (Reply | ConnectionFailure)[], repliedAt: number): boolean {
    if (cut !== 'timeout' || !this.#transactions.hasQuit || replies.some(isFailure)) return false
    return this.#group.egress.deps.clock.monotonicNow() - repliedAt >= SINGLE_QUIT_TIMEOUT_MS
  }

  /** Whether the replies to a pipelined group are not in the order of its commands. */
  #isMisordered(
    batch: readonly Q[],
    replies: readonly (Reply | ConnectionFailure)[],
    random: PipelinedReply | null,
  ): boolean {
    if (!this.#session.pipelining) return false
    const recipients = batch.map(({ address }) => wireAddress(address))
    if (random === null) return namesOther(recipients, replies)
    recipients.push(this.#catchAllProbe.recipientFor(batch[0] as Q))
    return namesOther(recipients, [...replies, random.reply])
  }

  #dropReply(): true {
    this.#group.stopPipelining(this.#opened.host)
    return this.#retry()
  }

  /** Handles a 421, which announces that the server closes, whichever command it answers. */
  #handleClosing(target: Q, answer: RecipientOutcome, index: number) {
    const { count } = this.#refusals
    this.#countRefusal(answer)
    if (!this.#countForOperator(target, answer)) return this.#resolve(target, answer)
    this.#noteFull(index, count)
    this.#resolve(target, answer)
    this.#abandon(answer)
  }

  /** Classifies the replies to one batch of recipients. */
  async #handleReplies(
    batch: Q[],
    replies: (Reply | ConnectionFailure)[],
    random: PipelinedReply | null,
  ) {
    const accepted: [Q, RecipientOutcome][] = []
    let throttling: RecipientOutcome | null = null
    let deferred: Q | null = null
    const domain = (batch[0] as Q).address.domain.ascii
    const answers = batch.map(({ address }, index) =>
      this.#answerTo(address.text, replies[index] as Reply | ConnectionFailure),
    )
    const deferredFrom = answers.findLastIndex(answer => !isTemporary(answer)) + 1
    let defersAll = false
    for (const [index, target] of batch.entries()) {
      if (index === deferredFrom) defersAll = await this.#defersAll(domain, batch)
      const outcome = replies[index] as Reply | ConnectionFailure
      const received = answers[index] as RecipientOutcome
      const answer = defersAll ? toThrottling(received) : received
      if (answer.kind === 'no-response') {
        this.#handleSilence(target, outcome, answer, index)
        continue
      }
      this.#received++
      const { count } = this.#refusals
      this.#countRefusal(answer)
      if (isTlsDemand(answer) && (await this.#upgrade(answer))) return
      if (isTooMany(answer)) {
        if (this.#handleTooMany(index)) continue
        // It has taken none in this connection, so it counts those of earlier ones.
        throttling = answer
      }
      this.#witnessCheck.add(domain, wireAddress(target.address), answer, this.#refusals.count)
      this.#noteAnswered(target, answer)
      if (this.#countForOperator(target, answer)) {
        throttling = answer
        this.#noteFull(index, count)
      }
      if (isPerRecipient(answer)) deferred = target
      if (answer.kind === 'accepted') accepted.push([target, answer])
      else this.#group.resolve(target, answer, { ...this.facts, asked: !defersAll })
    }
    if (random !== null && accepted.length === 0)
      this.#catchAllProbe.read(batch[0] as Q, random.reply)
    const mayIntroduce = random === null && accepted.length === 0 && throttling === null
    const recipientCount = batch.length
    const isFollowed = this.#log.hasRefusals || this.#witnessCheck.find() !== null
    const isLast = this.#remainingCount === accepted.length && !isFollowed
    if (deferred !== null && mayIntroduce)
      await this.#catchAllProbe.introduce(deferred, { recipientCount, isLast })
    const isAbandoned = throttling !== null || this.#group.isRefused(batch)
    const test = { recipientCount, isLast, pipelined: random, isAbandoned }
    const isFull = this.#group.transactionMax <= batch.length
    if (isFull && !isAbandoned && this.#log.hasRefusals) await this.#closeTransaction(domain)
    if (!this.#testMeanwhile(accepted, test)) {
      await this.#resolveAccepted(accepted, test)
      if (!isAbandoned && this.#log.hasRefusals) await this.#closeTransaction(domain)
    }
    if (throttling !== null) this.#abandon(throttling)
    if (this.#group.rateController.isRefused) this.#end()
    this.#group.resolveBlocked()
  }

  #noteAnswered({ address }: Q, { kind }: RecipientOutcome) {
    const domain = address.domain.ascii
    const isBetter =
      kind === 'accepted' || (kind === 'rejected' && this.#answered?.domain !== domain)
    if (isBetter) this.#answered = { domain, recipient: wireAddress(address) }
  }

  /**
   * Whether the server defers a recipient that it has answered before: then it has a limit, such as
   * of recipients, and does not greylist those that it deferred last.
   */
  async #defersAll(domain: string, batch: readonly Q[]): Promise<boolean> {
    const { limits } = this.#group.egress
    const { host } = this.#opened
    const meaning = limits.deferralMeaning(host)
    if (this.#group.options.single || meaning === 'recipients') return false
    let answered = this.#answered
    if (answered?.domain !== domain && meaning !== null)
      answered = this.#witnessCheck.find(Number.POSITIVE_INFINITY)
    if (answered?.domain !== domain || batch.some(needsSmtpUtf8)) return false
    if (meaning === null) limits.noteDeferral(host, 'unclear')
    if (this.#mustStop) return false
    const { recipient } = answered
    const hasRoom = this.#group.transactionMax > batch.length
    const reply = hasRoom
      ? await this.#transactions.rcptUnlessQuit(recipient, false)
      : await this.#transactions.rcptInNewTransaction(recipient, false)
    if (reply === 'quit-sent' || isFailure(reply)) return false
    const answer = this.#answerTo(recipient, reply)
    const isLimit = answer.kind === 'deferred' && !isTooMany(answer)
    limits.noteDeferral(host, isLimit ? 'limit' : 'recipients')
    return isLimit
  }

  /**
   * Without a reply, the recipient stays pending for the next connection. A reply code that RCPT
   * cannot have ends this session.
   */
  #handleSilence(
    target: Q,
    outcome: Reply | ConnectionFailure,
    answer: RecipientOutcome,
    index: number,
  ) {
    if (isFailure(outcome)) {
      this.#noteFull(index, this.#refusals.count)
      if (this.#failure === null) this.#group.onSilence(target)
    } else this.#resolve(target, answer)
    if (!isFailure(outcome) && outcome.code >= 400) return
    this.#failure ??= answer
    this.#end()
  }

  /**
   * Handles a server that accepts no more recipients: in this transaction or, at the first
   * recipient, in this connection. Returns true if this recipient should be retried, that is, if an
   * earlier one had a reply.
   */
  #handleTooMany(index: number): boolean {
    if (index > 0) {
      if (this.#isProbing) this.#group.noteTransactionMax(this.#opened.host, index)
      return true
    }
    // The connection takes no more recipients if it took one before.
    const isFull = this.#received > 1
    if (isFull) this.#end()
    return isFull
  }

  #countRefusal({ kind }: RecipientOutcome) {
    const isRefused = kind !== 'accepted'
    if (isRefused) this.#refusals.add(1)
    this.#group.rateController.onReply(isRefused)
  }

  /**
   * Counts unknown users, so that a list does not look like a dictionary attack. Single
   * verifications come from people and do not count.
   */
  #countUnknown({ kind, why }: RecipientOutcome) {
    const { rateController, options } = this.#group
    if (kind === 'accepted') rateController.onKnownRecipient()
    else if (kind !== 'rejected' || why !== 'no-mailbox') rateController.onOtherReply()
    else if (!options.single && rateController.onUnknownRecipient()) this.#end()
  }

  /** Counts an outcome for the operator. Returns true if it holds for all remaining recipients. */
  #countForOperator(target: Q, received: RecipientOutcome): boolean {
    const { address } = target
    const answer = this.#log.explain(address.domain.ascii, wireAddress(address), received)
    this.#countUnknown(answer)
    if (answer.kind === 'blocked') {
      this.#isBlocked = true
      this.#group.blockedAtRcpt(target, answer)
    } else this.#group.notBlocked(target)
    return isThrottling(answer)
  }

  async #resolveAccepted(accepted: AcceptedRecipients<Q>, test: CatchAllTest) {
    const [first] = accepted
    if (first === undefined) return
    const tested = await this.#catchAllProbe.determineCatchAll(first[0], test)
    if (tested === 'quit-sent') return void this.#retry()
    this.#resolveTested(accepted, tested)
  }

  #resolveTested(accepted: AcceptedRecipients<Q>, { known, inStep }: KnownCatchAllResult) {
    const facts = this.#testedFacts(known)
    const { pending } = this.#group
    for (const [target, answer] of accepted) {
      // A block may have resolved it during its test.
      if (pending.has(target)) this.#group.resolve(target, answer, facts, inStep)
    }
  }

  /**
   * Sends the random recipient and goes on with the next batch, so that the test of a domain costs
   * no round trip of its own. Returns false if no batch follows, or if the test must be awaited.
   */
  #testMeanwhile(accepted: AcceptedRecipients<Q>, test: CatchAllTest): boolean {
    const [first] = accepted
    const isFollowed =
      this.#remainingCount > accepted.length && this.#isProbing && this.#canContinue()
    if (first === undefined || !isFollowed || !this.#session.pipelining) return false
    if (test.pipelined !== null || test.isAbandoned) return false
    // An accepted recipient is asked again in this transaction.
    if (this.#log.findWitness(first[0].address.domain.ascii) !== null) return false
    const started = this.#catchAllProbe.start(first[0], test.recipientCount)
    if (started === null) return false
    for (const [target] of accepted) this.#underTest.add(target)
    const { reply, conclude, drop } = started
    this.#startedTest = { reply, conclude, drop, accepted }
    return true
  }

  /**
   * Handles the reply to a random recipient once all replies to the commands after it have arrived
   * (`isComplete`). After a missing reply, it may belong to another command, and the recipients are
   * probed again over the next connection. If it is the first one that is missing, they are accepted
   * without a test.
   */
  async #concludeTest(test: AcceptedTest<Q>, isComplete: boolean): Promise<void> {
    this.#startedTest = null
    const reply = await test.reply
    if (!isComplete && !isFailure(reply)) return test.drop()
    // The transaction after it has begun.
    if (!isComplete) this.#noteFull(-1, this.#refusals.count)
    const tested = test.conclude(reply)
    if (tested === null) return void this.#untested.push(test.accepted)
    for (const [target] of test.accepted) this.#underTest.delete(target)
    this.#resolveTested(test.accepted, tested)
  }

  async #rcptInOrder(all: readonly string[]): Promise<(Reply | ConnectionFailure)[]> {
    const replies: (Reply | ConnectionFailure)[] = []
    if (this.#group.transactionMax < all.length) {
      for (const to of all) {
        const reply = await this.#transactions.rcptInNewTransaction(to, false)
        replies.push(reply === 'quit-sent' ? NO_TRANSACTION : reply)
      }
      return replies
    }
    if (!(await this.#startTransaction(false))) return all.map(() => NO_TRANSACTION)
    const rcpts = this.#transactions.rcpts(all)
    if (this.#remainingCount === 0 && this.#session.pipelining) void this.quit()
    return rcpts
  }

  #resolve(target: Q, answer: RecipientOutcome) {
    this.#group.resolve(target, answer, this.facts)
  }

  /** The host, IP address, connect time and TLS state of this connection. */
  get facts() {
    const { host, ip, connectMs } = this.#opened
    return { host, ip, connectMs, tls: this.#session.secured }
  }

  /** The same with the result of the catch-all test of a domain. */
  #testedFacts(catchAll: boolean | null): ConnectionInfo {
    return { ...this.facts, catchAll }
  }
}

/** Deferred because the recipient is new to the server, which greylists or verifies it. */
const isPerRecipient = (
  answer: RecipientOutcome,
): answer is Extract<RecipientOutcome, { kind: 'deferred' }> =>
  answer.kind === 'deferred' && (answer.why === 'greylist' || answer.why === 'busy')

/** The same, with a code that asks to retry. */
const isTemporary = (answer: RecipientOutcome) => isPerRecipient(answer) && answer.reply.code < 500

const toThrottling = (answer: RecipientOutcome): RecipientOutcome =>
  answer.kind === 'deferred' ? { ...answer, why: 'rate' } : answer
