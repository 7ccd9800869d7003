import { wireAddress } from '../address/address.ts'
import type { RateController } from '../rate-control/controller.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import { type ConnectionFailure, isFailure } from '../smtp/connection.ts'
import type { Reply } from '../smtp/reply.ts'
import type { Session } from '../smtp/session.ts'
import { CatchAllProbe, type CatchAllTest, type PipelinedReply } from './catch-all-probe.ts'
import type { MxGroupProbe } from './mx-group-probe.ts'
import { catchAllKey, needsSmtpUtf8, nextBatch, type ProbeTarget } from './mx-groups.ts'
import { type OpenSession, startTls } from './open-session.ts'
import type { ProbeListener, ServerCall } from './probe-listener.ts'
import {
  type Cut,
  cutShort,
  isTlsDemand,
  isTooMany,
  noResponse,
  outcomeFor,
} from './probe-outcome.ts'

/** After so much of its time a conversation takes no new transaction. */
const SESSION_SHARE = 0.5

/**
 * How long a single question waits for the reply to QUIT. A surplus reply takes the place of that
 * reply, so it is here at once: a server need not look anything up to answer QUIT. After this time
 * there is no surplus.
 */
const QUIT_TIMEOUT_MS = 500

/** What is asked of one exchanger in one connection: transaction after transaction, RSET between. */
export class SmtpProbe<Q extends ProbeTarget> {
  readonly #group: MxGroupProbe<Q>
  readonly #opened: OpenSession
  readonly #session: Session
  readonly #catchAllProbe: CatchAllProbe<Q>
  readonly #startedAt: number
  /** Recipients that went out, random and unanswered ones too. */
  #asked = 0
  /** Recipients that were answered. */
  #received = 0
  #transactions = 0
  readonly #refusals: BlockLimit
  /** Met one unknown user too many in a row. */
  #streakExceeded = false
  /** Somebody was refused for our sake: no success, though the conversation may go on. */
  #refused = false
  /** TLS could not be put on: it is asked for no more. */
  #withoutTls = false
  /** What ended the conversation before its time. */
  #lost: RecipientOutcome | null = null
  #over = false
  #hasQuit = false
  #wentWell = false
  /** The host has to be asked in another way, which is known now. */
  #isRetried = false

  constructor(group: MxGroupProbe<Q>, opened: OpenSession) {
    this.#group = group
    this.#opened = opened
    this.#session = opened.session
    this.#catchAllProbe = new CatchAllProbe(group, opened.session, {
      inBatch: to => this.#rcpt(to),
      here: (to, isLast) => this.#askHere(to, isLast),
      isAlone: (to, isLast) => this.#probeSingly(to, isLast),
      noteFull: taken => this.#narrow(taken),
    })
    this.#refusals = new BlockLimit(group.options.rateController)
    this.#startedAt = group.options.deps.clock.monotonicNow()
    group.reduceBatchSize(group.options.hosts.recipientsMax(opened.host))
  }

  async run(): Promise<RecipientOutcome | null> {
    while (!this.#over && this.#session.usable && this.#hasRoom()) {
      await this.#transaction(nextBatch(this.#group.pending, this.#batchMax()))
    }
    const isComplete = this.#hasQuit || this.#session.usable
    this.#wentWell = this.#lost === null && !this.#refused && isComplete
    return this.#lost
  }

  /** Recipients that this connection may still ask about, without the random one that comes with them. */
  get #room(): number {
    const [first] = this.#group.pending
    const reserve = first === undefined || this.#catchAllProbe.isKnown(first) ? 0 : 1
    return this.#group.options.rateController.row.recipientsPerSession - this.#asked - reserve
  }

  /** Neither more than there is room for, nor past the unknown user at whom we leave. */
  #batchMax(): number {
    const { rateController, single } = this.#group.options
    // Where a connection may ask about one recipient, the random one is a second.
    const room = Math.max(1, this.#room)
    const timeout = single ? room : Math.min(rateController.unknownsLeft, this.#refusals.bearable)
    return Math.min(this.#group.transactionMax, room, timeout)
  }

  /** Says QUIT, unless that was said. Resolves when the connection is closed. */
  quit(): Promise<void> {
    this.#hasQuit = true
    this.#over = true
    if (!this.#group.options.single) return this.#session.quit()
    // Without PIPELINING each reply is believed as it comes.
    return this.#session.quit(this.#session.offersPipelining ? QUIT_TIMEOUT_MS : 0)
  }

  /** Each reply of the connection is known to belong to its command. */
  confirm(): void {
    if (!this.#wentWell) return
    this.#group.options.rateController.succeeded()
    this.#opened.permit.succeeded()
  }

  /** The questions without an answer are asked again at once, in the way that this host wants. */
  get isRetried(): boolean {
    return this.#isRetried
  }

  #hasRoom(): boolean {
    const { rateController, deps, drain, single } = this.#group.options
    if (this.#group.pending.size === 0 || this.#streakExceeded || drain.aborted) return false
    // Not before it has come to something, or a list would never come to its end.
    if (!single && this.#received > 0 && rateController.isRequested) return false
    if (this.#refusals.isReached) return false
    if (this.#asked > 0 && this.#room < 1) return false
    return deps.clock.monotonicNow() - this.#startedAt < deps.timeouts.sessionMs * SESSION_SHARE
  }

  async #transaction(batch: Q[]): Promise<void> {
    const [first] = batch as [Q, ...Q[]]
    if (first.accepted !== null) return this.#testDomain(first)
    const smtpUtf8 = needsSmtpUtf8(first)
    if (smtpUtf8 && !this.#session.offersSmtpUtf8) {
      const answer = noResponse('smtputf8', 'mail', 'the server does not offer SMTPUTF8 (RFC 6531)')
      for (const question of batch) this.#settle(question, answer)
      return
    }
    const mail = this.#session.pipelining ? this.#sendMail(smtpUtf8) : null
    if (mail === null && !(await this.#begin(smtpUtf8))) return
    const rcpts = batch.map(question => this.#rcpt(wireAddress(question.address)))
    const turn = this.#catchAllProbe.lockForBatch(batch)
    const random = turn === null ? null : this.#catchAllProbe.rcpt(first)
    const isLast = mail !== null && this.#isLast(batch, turn !== null)
    if (isLast) void this.quit()
    try {
      const mailReply = mail === null ? null : await mail
      const replies = await Promise.all(rcpts)
      const notified = turn === null || random === null ? null : { turn, reply: await random }
      const last = notified?.reply ?? (replies.at(-1) as Reply | ConnectionFailure)
      const cut = mail === null ? null : cutShort(last)
      const answer = mailReply === null ? null : this.#mailAnswer(mailReply)
      if (answer !== null) await this.#mailFailed(answer, cut, batch.length)
      else if (cut === null) await this.#handleReplies(batch, replies, notified)
      else this.#handlePart(batch, replies, last)
    } finally {
      turn?.drop()
    }
  }

  /** Asks about the random recipient alone, for all recipients of a domain that were accepted before. */
  async #testDomain(first: Q): Promise<void> {
    const domain = first.address.domain.ascii
    const known = this.#group.options.catchAll.get(catchAllKey(first))
    if (known === null && !(await this.#begin(false))) return
    const notified =
      known === null ? await this.#catchAllProbe.test(first) : { known, inStep: null, answer: null }
    const { answer } = notified
    this.#received++
    for (const question of this.#group.pending) {
      if (question.accepted === null || question.address.domain.ascii !== domain) continue
      const facts = { ...this.facts, catchAll: notified.known }
      this.#group.resolve(question, question.accepted.answer, facts, notified.inStep)
    }
    if (answer?.kind === 'no-response') this.#lost = answer
    if (answer?.kind === 'deferred' && answer.why === 'rate') this.#abandon(answer)
  }

  /**
   * True where nothing else will be asked: QUIT leaves in the same write (RFC 2920 §3.1), so that
   * its reply costs no round trip. More is asked where TLS is demanded but not on, or the random
   * recipient comes later. A host that demands TLS for the first time, or takes few recipients in
   * a transaction, costs a second connection, once an hour.
   */
  #isLast(batch: readonly Q[], isRandomInBatch: boolean): boolean {
    const { hosts, deps } = this.#group.options
    if (batch.length < this.#group.pending.size) return false
    const { host } = this.#opened
    if (!this.#session.secured && hosts.requiresTls(host, deps.startTls)) return false
    return isRandomInBatch || batch.every(question => this.#catchAllProbe.isKnown(question))
  }

  /**
   * RSET where needed, then MAIL, without waiting, so that the recipients leave in the same write. Outlook.com
   * answers 554 to RSET; then the reply to MAIL tells whether the conversation can go on.
   */
  #sendMail(smtpUtf8: boolean): Promise<Reply | ConnectionFailure> {
    if (this.#transactions++ > 0) void this.#session.rset()
    return this.#session.mail(this.#sender, { smtpUtf8 })
  }

  /** The same in lock-step. False: the batch stays pending or is settled. */
  async #begin(smtpUtf8: boolean): Promise<boolean> {
    const reset = this.#transactions++ === 0 ? null : await this.#session.rset()
    if (reset !== null && isFailure(reset)) return this.#end(reset)
    const answer = this.#mailAnswer(await this.#session.mail(this.#sender, { smtpUtf8 }))
    if (answer === null) return true
    await this.#mailFailed(answer)
    return false
  }

  get #sender(): string {
    return this.#group.options.deps.egress.mailFrom
  }

  #end(outcome: ConnectionFailure): false {
    this.#lost = outcomeFor('rset', outcome)
    this.#over = true
    return false
  }

  /** Null for a 250; an answer for anything else. */
  #mailAnswer(reply: Reply | ConnectionFailure): RecipientOutcome | null {
    return !isFailure(reply) && reply.code === 250 ? null : outcomeFor('mail', reply)
  }

  /**
   * MAIL was not taken: that is about us, so it holds for everybody who is still to be asked
   * here. The server has refused the recipients that went out `behind` it too, or closed the
   * connection. Where it falls silent, the reply to MAIL may be lost, and this one belongs to a
   * recipient.
   */
  async #mailFailed(answer: RecipientOutcome, cut: Cut | null = null, behind = 0): Promise<void> {
    if (answer.kind === 'no-response') {
      this.#lost = answer
      this.#over = true
      return
    }
    const isSure = cut === null || (cut === 'closed' && answer.kind !== 'rejected')
    if (!isSure) return void this.#dropReply()
    this.#refusals.add(1 + behind)
    if (isTlsDemand(answer) && (await this.#upgrade(answer))) return
    this.#over = true
    // A second transaction refused where the first was taken: the host wants a new connection for each.
    const isFull = answer.kind !== 'deferred' || isTooMany(answer)
    if (this.#transactions > 1 && this.#received > 0 && isFull) return
    this.#abandon(answer)
  }

  /**
   * The operator wants none of us, or none so fast: everybody still to be asked here is told so. A demand for
   * TLS that cannot be met is the host's alone.
   */
  #abandon(answer: RecipientOutcome) {
    const { rateController } = this.#group.options
    if (answer.kind === 'blocked' && !isTlsDemand(answer)) rateController.refused(answer)
    if (answer.kind === 'deferred') this.#throttled(answer)
    this.#over = true
    this.#lost = answer
    this.#group.resolveRemaining(answer, this.facts)
  }

  /** Before RCPT it is the server that wants us slower, whatever names it has; later it may be one domain. */
  #throttled({ stage, retryAfterMs }: Extract<RecipientOutcome, { kind: 'deferred' }>) {
    this.#group.options.rateController.throttled(retryAfterMs)
    if (stage !== 'rcpt') this.#opened.permit.throttled(retryAfterMs)
  }

  /**
   * Puts TLS on because the server demands it. True when the demand is dealt with: the same batch can be asked again,
   * or the server has no TLS for now, and everybody here is told so.
   */
  async #upgrade(demand: RecipientOutcome): Promise<boolean> {
    const { deps, hosts, signal } = this.#group.options
    if (deps.startTls === 'never' || this.#withoutTls) return false
    if (!this.#session.offersStartTls) return false
    hosts.demandsTls(this.#opened.host)
    if (this.#hasQuit) {
      this.#group.noteTlsDemand(demand, this.facts)
      return this.#retry()
    }
    const failure = await startTls(this.#session, deps, this.#opened.host, signal)
    // RFC 3207 §4.2: with TLS all begins anew; without it the transaction stands as it was.
    if (this.#session.secured) this.#transactions = 0
    if (failure === null) return true
    this.#withoutTls = true
    // Who speaks TLS with us and takes no EHLO is not spoken with any more.
    this.#over ||= this.#session.secured
    if (failure.kind === 'no-response') this.#lost = failure
    if (failure.kind !== 'deferred' || failure.stage !== 'starttls') return false
    this.#abandon(failure)
    return true
  }

  /** The questions without an answer are asked in a new connection, in a way that is known now. */
  #retry(): true {
    this.#isRetried = true
    this.#over = true
    return true
  }

  /**
   * A reply to this group is missing, or the server ended it with 421. If one was lost, those
   * after it came one place too early. None of them is believed: these recipients are asked again
   * without PIPELINING.
   */
  #handlePart(batch: Q[], replies: (Reply | ConnectionFailure)[], last: Reply | ConnectionFailure) {
    for (const [index, question] of batch.entries()) {
      const outcome = replies[index] as Reply | ConnectionFailure
      const answer = outcomeFor('rcpt', outcome, question.address.text)
      if (isFailure(outcome)) this.#handleSilence(question, outcome, answer)
      else if (outcome.code !== 421 || answer.kind === 'rejected') this.#dropReply()
      else this.#handleClosing(question, answer)
    }
    if (isFailure(last)) this.#lost ??= outcomeFor('rcpt', last)
  }

  #dropReply(): true {
    this.#group.stopPipelining(this.#opened.host)
    return this.#retry()
  }

  /** 421 says that the server closes, whichever command it answers. */
  #handleClosing(question: Q, answer: RecipientOutcome) {
    this.#countRefusal(answer)
    if (this.#isBlockedForAll(question, answer)) this.#abandon(answer)
    else this.#settle(question, answer)
  }

  /** Understands the replies to one batch of recipients. */
  async #handleReplies(
    batch: Q[],
    replies: (Reply | ConnectionFailure)[],
    random: PipelinedReply | null,
  ) {
    const accepted: [Q, RecipientOutcome][] = []
    let blocking: RecipientOutcome | null = null
    let deferred: Q | null = null
    for (const [index, question] of batch.entries()) {
      const outcome = replies[index] as Reply | ConnectionFailure
      const answer = outcomeFor('rcpt', outcome, question.address.text)
      if (answer.kind === 'no-response') {
        this.#handleSilence(question, outcome, answer)
        continue
      }
      this.#received++
      this.#countRefusal(answer)
      if (isTlsDemand(answer) && (await this.#upgrade(answer))) return
      if (isTooMany(answer) && this.#isFull(index)) continue
      if (this.#isBlockedForAll(question, answer)) blocking = answer
      if (answer.kind === 'deferred' && isPerRecipient(answer)) deferred = question
      if (answer.kind === 'accepted') accepted.push([question, answer])
      else this.#settle(question, answer)
    }
    const mayIntroduce = random === null && accepted.length === 0 && blocking === null
    const test = {
      inTransaction: batch.length,
      isLast: this.#group.pending.size === accepted.length,
    }
    if (deferred !== null && mayIntroduce) await this.#catchAllProbe.introduce(deferred, test)
    const isLeaving = blocking !== null || this.#group.isRefused(batch)
    await this.#settleAccepted(accepted, { ...test, early: random, isLeaving })
    if (blocking !== null) this.#abandon(blocking)
    this.#over ||= this.#group.options.rateController.isRefused
    this.#group.settleRefused()
  }

  /** No reply leaves the recipient for the next connection; one that no RCPT can have ends this one. */
  #handleSilence(question: Q, outcome: Reply | ConnectionFailure, answer: RecipientOutcome) {
    if (!isFailure(outcome)) this.#settle(question, answer)
    if (!isFailure(outcome) && outcome.code >= 400) return
    this.#lost ??= answer
    this.#over = true
  }

  /**
   * The server takes no more recipients: in this transaction, or where it is the first one, in this connection. True
   * when it is worth asking this one again, which it is not where nobody was heard before.
   */
  #isFull(index: number): boolean {
    if (index === 0) this.#over = this.#received > 1
    else if (!this.#over) this.#narrow(index)
    return index > 0 || this.#over
  }

  /** A transaction was full after `taken` recipients: that holds for later connections too. */
  #narrow(taken: number) {
    this.#group.options.hosts.noteRecipientsMax(this.#opened.host, taken)
    this.#group.reduceBatchSize(taken)
  }

  #countRefusal({ kind }: RecipientOutcome) {
    const isRefused = kind !== 'accepted'
    if (isRefused) this.#refusals.add(1)
    this.#group.options.rateController.recent(isRefused)
  }

  /** A list must not look like a dictionary attack; single questions come from people, and count for nothing here. */
  #countUnknown({ kind, why }: RecipientOutcome) {
    const { rateController, single } = this.#group.options
    if (kind === 'accepted') rateController.found()
    else if (kind !== 'rejected' || why !== 'no-mailbox') rateController.notUnknown()
    else if (!single && rateController.unknown()) this.#streakExceeded = true
  }

  /** Counts what an answer says of us. True when it holds for everybody here, not for one recipient. */
  #isBlockedForAll(question: Q, answer: RecipientOutcome): boolean {
    this.#countUnknown(answer)
    if (answer.kind === 'blocked') {
      this.#refused = true
      this.#group.refusedAtRcpt(question, answer)
    } else this.#group.notRefused(question)
    return answer.kind === 'deferred' && answer.why === 'rate'
  }

  async #settleAccepted(accepted: [Q, RecipientOutcome][], test: CatchAllTest) {
    const [first] = accepted
    if (first === undefined) return
    const notified = await this.#catchAllProbe.catchAllOf(first[0], test)
    if (notified === 'over') return void this.#retry()
    const facts = { ...this.facts, catchAll: notified.known }
    for (const [question, answer] of accepted) {
      this.#group.resolve(question, answer, facts, notified.inStep)
    }
  }

  #rcpt(to: string): Promise<Reply | ConnectionFailure> {
    this.#asked++
    return this.#session.rcpt(to)
  }

  /** One recipient in the transaction at hand; `isLast`: nothing else will be asked. */
  async #askHere(to: string, isLast: boolean): Promise<Reply | ConnectionFailure | 'over'> {
    if (this.#hasQuit) return 'over'
    const rcpt = this.#rcpt(to)
    if (isLast && this.#session.pipelining) void this.quit()
    return rcpt
  }

  /** The same in a transaction of its own. */
  async #probeSingly(to: string, isLast: boolean): Promise<Reply | ConnectionFailure | 'over'> {
    if (this.#hasQuit) return 'over'
    // Without PIPELINING the session itself waits for each reply.
    void this.#session.rset()
    const mail = this.#session.mail(this.#sender)
    const rcpt = this.#askHere(to, isLast)
    this.#transactions++
    const refused = this.#mailAnswer(await mail)
    const own = await rcpt
    return refused === null ? own : NO_TRANSACTION
  }

  #settle(question: Q, answer: RecipientOutcome) {
    this.#group.resolve(question, answer, this.facts)
  }

  /** Who was spoken with. */
  get facts() {
    const { host, ip, connectMs } = this.#opened
    return { host, ip, connectMs, tls: this.#session.secured }
  }
}

/** Deferred because the recipient is new to the server: it greylists, or verifies the address. */
const isPerRecipient = ({ why }: Extract<RecipientOutcome, { kind: 'deferred' }>) =>
  why === 'greylist' || why === 'busy'

const NO_TRANSACTION: ConnectionFailure = {
  broken: 'closed',
  stage: 'mail',
  detail: 'no transaction',
}

/** Lines that are kept. */
const LINES_MAX = 200

/**
 * The lines of one connection, kept where they are asked for, and handed to the listener as they
 * come.
 */
export class Dialogue implements ProbeListener {
  readonly #lines: string[] | null
  readonly #listener: ProbeListener | null

  constructor(isKept: boolean, listener: ProbeListener | null) {
    this.#lines = isKept ? [] : null
    this.#listener = listener
  }

  /** Null where nobody wants to know. */
  get asListener(): ProbeListener | null {
    return this.#lines === null && this.#listener === null ? null : this
  }

  /** A copy of the lines so far; null where they are not kept. */
  get lines(): readonly string[] | null {
    return this.#lines && [...this.#lines]
  }

  /** Keeps a remark of ours, which was not said to the server. */
  note(text: string): void {
    this.#keep(`* ${text}`)
  }

  onCall(call: ServerCall): void {
    if (call.answer === null) this.note(`connected to ${call.host} [${call.ip}]`)
    this.#listener?.onCall(call)
  }

  onLine(line: string): void {
    this.#keep(line)
    this.#listener?.onLine(line)
  }

  #keep(line: string) {
    if (this.#lines !== null && this.#lines.length < LINES_MAX) this.#lines.push(line)
  }
}

/**
 * Refusals after which a connection of a list is left. From eleven on Postfix takes a second over
 * each (smtpd_soft_error_limit); a refused MAIL and an unguessable recipient are two more.
 */
const REFUSALS_MAX = 8
/** Refusals that one connection can bear: at twenty Postfix hangs up (smtpd_hard_error_limit). */
const REFUSALS_BORNE = 20

/** Counts the commands refused in one connection, for whatever reason. */
class BlockLimit {
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
