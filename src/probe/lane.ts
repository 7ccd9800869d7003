import { wireAddress } from '../address/address.ts'
import { SECOND } from '../base/clock.ts'
import { type Answer, classify } from '../smtp/answer.ts'
import type { Reply } from '../smtp/reply.ts'
import { type Broken, isBroken, type Session } from '../smtp/session.ts'
import { type CatchAllMemory, type CatchAllTurn, unguessableName } from './catch-all.ts'
import type { ProbeWorld } from './egress.ts'
import type { HostMemory } from './host-memory.ts'
import { answerTo, greet, type Opened, openSession, silent } from './open-session.ts'
import type { Pace } from './pace.ts'
import { type LanePlan, needsSmtpUtf8, nextBatch, type Question } from './plan.ts'

/** What asking brought for one recipient, with the facts of the run. */
export type Probed = {
  readonly answer: Answer
  /** Whether the domain takes mail for everybody; null: not asked, or it could not be told. */
  readonly catchAll: boolean | null
  readonly host: string | null
  readonly ip: string | null
  readonly tls: boolean
  /** From dialling to the end of EHLO; null when no conversation was opened. */
  readonly connectMs: number | null
  /** False when nobody was asked: the answer is what is remembered of the exchangers or the operator. */
  readonly asked: boolean
  /** The lines said, when asked for. */
  readonly dialogue: readonly string[] | null
}

export type LaneOptions<Q extends Question> = {
  readonly world: ProbeWorld
  readonly pace: Pace
  readonly catchAll: CatchAllMemory
  readonly hosts: HostMemory
  readonly signal: AbortSignal
  readonly drain: AbortSignal
  /** A single verification: the unguessable recipient goes in the same write as the real one. */
  readonly single: boolean
  /** How long a pause may be waited out before what is left is handed back as deferred. */
  readonly patienceMs: number
  readonly dialogue: boolean
  readonly onProbed: (question: Q, probed: Probed) => void
}

/** Conversations in a row that may end without one answer before the rest is given up. */
const FRUITLESS_MAX = 2
/** Lines of a dialogue that are kept. */
const DIALOGUE_LINES_MAX = 200
/** Refusals at RCPT, with nothing else in between, that count as a refusal by the whole operator. */
const REFUSALS_MAX = 3
/** After so much of its time a conversation takes no new transaction. */
const SESSION_SHARE = 0.5

/** Walks the questions of one set of exchangers, conversation after conversation, at the operator's pace. */
export class Lane<Q extends Question> {
  readonly #plan: LanePlan<Q>
  readonly #options: LaneOptions<Q>
  #pending: Q[]
  #refusals = 0
  /** Recipients that this host takes in one transaction, as far as it has told us. */
  #transactionMax: number
  #dialogue: string[] | null = null

  constructor(plan: LanePlan<Q>, options: LaneOptions<Q>) {
    this.#plan = plan
    this.#options = options
    this.#pending = [...plan.questions]
    this.#transactionMax = options.pace.row.recipientsPerTransaction
  }

  /** Resolves when every question has its answer and no connection of the lane is open. */
  async walk(): Promise<void> {
    const { pace, hosts, drain, patienceMs, single } = this.#options
    let fruitless = 0
    while (this.#pending.length > 0) {
      if (drain.aborted) return this.#settleUnasked(TIME_RAN_OUT)
      const down = hosts.downAnswer(this.#plan.key)
      if (down !== null) return this.#settleUnasked(down)
      const start = await pace.start(patienceMs, drain)
      if ('refusal' in start) return this.#settleUnasked(start.refusal)
      if ('waitMs' in start) return this.#settleUnasked(heldBack(start.waitMs, drain.aborted))
      const before = this.#pending.length
      const lost = await this.#visit().finally(start.permit.release)
      if (this.#pending.length < before) {
        fruitless = 0
        continue
      }
      if (lost?.kind === 'silent') hosts.failed(this.#plan.key, lost)
      if (++fruitless >= (single ? 1 : FRUITLESS_MAX)) this.settleRest(lost ?? LED_NOWHERE, {})
    }
  }

  /** One connection, from dialling to QUIT. Gives what ended it, when that was not its natural end. */
  async #visit(): Promise<Answer | null> {
    const { world, hosts, signal, dialogue } = this.#options
    this.#dialogue = dialogue ? [] : null
    const opened = await openSession(world, this.#plan.route, {
      signal,
      listener: dialogue ? line => this.#note(line) : null,
      startTls: host => hosts.wantsTls(host, world.startTls),
    })
    if (!('session' in opened)) return this.#notOpened(opened.answer, opened)
    const close = () => opened.session.close()
    signal.addEventListener('abort', close, { once: true })
    try {
      return await new Conversation(this, opened).run()
    } finally {
      signal.removeEventListener('abort', close)
      await opened.session.quit()
    }
  }

  #notOpened(answer: Answer, where: { host: string | null; ip: string | null }): Answer | null {
    const { hosts, pace, world } = this.#options
    if (answer.kind === 'silent') {
      if (answer.why === 'tls' && where.host !== null && hosts.tlsFailed(where.host)) return null
      // A name without an address, or with a forbidden one, does not change by asking again at once.
      const final = answer.why === 'no-address' || answer.why === 'not-public'
      if (final || this.#options.single || this.#options.signal.aborted) {
        hosts.failed(this.#plan.key, answer)
        this.settleRest(answer, where)
      }
      return answer
    }
    world.log.warn('a mail server would not have us', {
      host: where.host,
      kind: answer.kind,
      why: answer.why,
      code: answer.reply.code,
    })
    if (answer.kind === 'refused-us') pace.refused(answer)
    if (answer.kind === 'deferred') pace.throttled(answer.retryAfterMs)
    this.settleRest(answer, where)
    return answer
  }

  #note(line: string) {
    if (this.#dialogue !== null && this.#dialogue.length < DIALOGUE_LINES_MAX) {
      this.#dialogue.push(line)
    }
  }

  // What follows is for the conversation at hand.

  get options(): LaneOptions<Q> {
    return this.#options
  }

  get pending(): readonly Q[] {
    return this.#pending
  }

  get transactionMax(): number {
    return this.#transactionMax
  }

  /** The host said that a transaction was full after `taken` recipients. */
  narrow(taken: number) {
    this.#transactionMax = Math.max(1, Math.min(this.#transactionMax, taken))
  }

  /** Counts refusals of us at RCPT; true when it is the operator that refuses, not one recipient. */
  refusedAtRcpt(): boolean {
    return ++this.#refusals >= REFUSALS_MAX
  }

  notRefused() {
    this.#refusals = 0
  }

  settle(question: Q, answer: Answer, facts: Facts) {
    if (answer.kind !== 'silent') this.#options.hosts.reached(this.#plan.key)
    this.#pending = this.#pending.filter(other => other !== question)
    this.#options.onProbed(question, {
      catchAll: question.catchAll,
      host: null,
      ip: null,
      tls: false,
      connectMs: null,
      asked: true,
      ...facts,
      answer,
      dialogue: this.#dialogue === null ? null : [...this.#dialogue],
    })
  }

  settleRest(answer: Answer, facts: Facts) {
    for (const question of this.#pending) this.settle(question, answer, facts)
  }

  #settleUnasked(answer: Answer) {
    this.settleRest(answer, { asked: false })
  }
}

type Facts = Partial<Omit<Probed, 'answer' | 'dialogue'>>

const TIME_RAN_OUT = silent('timeout', 'connect', 'time ran out')
const LED_NOWHERE = silent('closed', 'rcpt', 'the conversation led nowhere')

/** What is asked of one exchanger in one connection: transaction after transaction, RSET between. */
class Conversation<Q extends Question> {
  readonly #lane: Lane<Q>
  readonly #opened: Opened
  readonly #session: Session
  readonly #begunAt: number
  #asked = 0
  #transactions = 0
  #streak = 0
  /** What ended the conversation before its time. */
  #lost: Answer | null = null
  #over = false

  constructor(lane: Lane<Q>, opened: Opened) {
    this.#lane = lane
    this.#opened = opened
    this.#session = opened.session
    this.#begunAt = lane.options.world.clock.ticks()
  }

  async run(): Promise<Answer | null> {
    const { pace } = this.#lane.options
    while (!this.#over && this.#session.usable && this.#hasRoom()) {
      const room = pace.row.recipientsPerSession - this.#asked
      const batch = nextBatch(this.#lane.pending, Math.min(this.#lane.transactionMax, room))
      if (batch.length === 0) break
      await this.#transaction(batch)
    }
    if (this.#lost === null && this.#session.usable) pace.succeeded()
    return this.#lost
  }

  #hasRoom(): boolean {
    const { pace, world, drain } = this.#lane.options
    const { recipientsPerSession, unknownStreakMax } = pace.row
    if (this.#lane.pending.length === 0 || drain.aborted) return false
    if (this.#streak >= unknownStreakMax) {
      pace.strayed()
      return false
    }
    const age = world.clock.ticks() - this.#begunAt
    return this.#asked < recipientsPerSession && age < world.timeouts.sessionMs * SESSION_SHARE
  }

  async #transaction(batch: Q[]): Promise<void> {
    const [first] = batch as [Q, ...Q[]]
    const smtpUtf8 = needsSmtpUtf8(first)
    if (smtpUtf8 && !this.#session.offersSmtpUtf8) {
      const answer = silent('smtputf8', 'mail', 'the server does not offer SMTPUTF8 (RFC 6531)')
      for (const question of batch) this.#settle(question, answer)
      return
    }
    const mail = await this.#begin(smtpUtf8)
    if (mail === null) return
    const rcpts = batch.map(question => this.#rcpt(wireAddress(question.address)))
    const together = this.#asksTogether(batch)
    const random = together ? this.#rcpt(this.#unguessable(first)) : null
    if (mail !== 'begun') {
      const answer = this.#mailAnswer(await mail)
      if (answer !== null) {
        await Promise.all([...rcpts, random])
        return this.#mailFailed(answer)
      }
    }
    await this.#hear(batch, await Promise.all(rcpts), await random)
  }

  /**
   * RSET where needed, then MAIL. With PIPELINING the promise of its reply is handed back, so that the
   * recipients can follow in the same write; else it is waited for. Null: the batch stays pending or is settled.
   */
  async #begin(smtpUtf8: boolean): Promise<Promise<Reply | Broken> | 'begun' | null> {
    const session = this.#session
    const reset = this.#transactions++ === 0 ? null : session.rset()
    if (session.pipelining) {
      // Outlook.com answers 554 to RSET; then MAIL tells whether the conversation can go on.
      return session.mail(this.#sender, { smtpUtf8 })
    }
    if (reset !== null && isBroken(await reset)) return this.#end(await reset)
    const answer = this.#mailAnswer(await session.mail(this.#sender, { smtpUtf8 }))
    if (answer === null) return 'begun'
    await this.#mailFailed(answer)
    return null
  }

  get #sender(): string {
    return this.#lane.options.world.egress.mailFrom
  }

  #end(outcome: Reply | Broken): null {
    this.#lost = answerTo('rset', outcome)
    this.#over = true
    return null
  }

  #rcpt(to: string): Promise<Reply | Broken> {
    return this.#session.rcpt(to)
  }

  /** Null for a 250; an answer for anything else. */
  #mailAnswer(reply: Reply | Broken): Answer | null {
    return !isBroken(reply) && reply.code === 250 ? null : answerTo('mail', reply)
  }

  /** MAIL was not taken: that is about us, so it holds for everybody who is still to be asked here. */
  async #mailFailed(answer: Answer): Promise<void> {
    const { pace } = this.#lane.options
    if (answer.kind === 'silent') {
      this.#lost = answer
      this.#over = true
      return
    }
    if (answer.kind === 'refused-us' && answer.why === 'tls' && (await this.#upgrade())) return
    this.#over = true
    // A second transaction refused where the first was taken: the host wants a new connection for each.
    if (this.#transactions > 1 && this.#asked > 0 && answer.kind !== 'deferred') return
    if (answer.kind === 'refused-us') pace.refused(answer)
    if (answer.kind === 'deferred') pace.throttled(answer.retryAfterMs)
    this.#lost = answer
    this.#lane.settleRest(answer, this.#facts())
  }

  /** Puts TLS on because the server demands it; true when the same batch can be asked again. */
  async #upgrade(): Promise<boolean> {
    const { world, hosts, signal } = this.#lane.options
    if (world.startTls === 'never' || !this.#session.offersStartTls) return false
    hosts.demandsTls(this.#opened.host)
    this.#transactions = 0
    const trouble = await greet(this.#session, world, this.#opened.host, true, signal)
    if (trouble === null) return this.#session.secured
    this.#lost = trouble
    return false
  }

  /** Understands the replies to one batch of recipients. */
  async #hear(batch: Q[], replies: (Reply | Broken)[], random: Reply | Broken | null) {
    const { pace } = this.#lane.options
    const accepted: [Q, Answer][] = []
    let slower: Answer | null = null
    for (const [index, question] of batch.entries()) {
      const outcome = replies[index] as Reply | Broken
      const answer = answerTo('rcpt', outcome, question.address.text)
      if (answer.kind === 'silent') {
        if (answer.why === 'garbage' && !isBroken(outcome)) this.#settle(question, answer)
        else if (this.#lost === null) this.#lost = answer
        continue
      }
      this.#asked++
      if (answer.kind === 'refused-us' && answer.why === 'tls' && (await this.#upgrade())) return
      if (answer.kind === 'deferred' && answer.why === 'too-many' && index > 0) {
        this.#lane.narrow(index)
        continue
      }
      this.#count(answer)
      if (answer.kind === 'accepted') accepted.push([question, answer])
      else this.#settle(question, answer)
      if (answer.kind === 'deferred' && answer.why === 'rate') slower = answer
      if (answer.kind === 'refused-us' && this.#lane.refusedAtRcpt()) {
        pace.refused(answer)
        this.#over = true
        this.#lane.settleRest(answer, this.#facts())
      }
    }
    await this.#settleAccepted(accepted, random)
    if (slower?.kind === 'deferred') {
      pace.throttled(slower.retryAfterMs)
      this.#over = true
      this.#lane.settleRest(slower, this.#facts())
    }
  }

  #count(answer: Answer) {
    const { pace } = this.#lane.options
    const unknown = answer.kind === 'rejected' && answer.why === 'no-mailbox'
    this.#streak = unknown ? this.#streak + 1 : 0
    if (answer.kind === 'accepted') pace.found()
    if (answer.kind !== 'refused-us') this.#lane.notRefused()
  }

  async #settleAccepted(accepted: [Q, Answer][], random: Reply | Broken | null) {
    const [first] = accepted
    if (first === undefined) return
    const catchAll = await this.#catchAllOf(first[0], random)
    for (const [question, answer] of accepted) this.#settle(question, answer, { catchAll })
  }

  /** Whether the domain takes everything: known before, told by the reply at hand, or asked now. */
  async #catchAllOf(question: Q, random: Reply | Broken | null): Promise<boolean | null> {
    if (question.catchAll !== null) return question.catchAll
    const domain = question.address.domain.ascii
    const memory = this.#lane.options.catchAll
    if (random !== null && !isTooMany(random)) {
      const told = catchAllFrom(random)
      if (told !== null) memory.remember(domain, told)
      return told
    }
    if (random !== null) this.#lane.narrow(1)
    const turn: CatchAllTurn = await memory.take(domain)
    if ('known' in turn) return turn.known
    let told: boolean | null = null
    try {
      if (this.#session.usable) told = catchAllFrom(await this.#askUnguessable(question))
    } finally {
      turn.settle(told)
    }
    return told
  }

  async #askUnguessable(question: Q): Promise<Reply | Broken> {
    const to = this.#unguessable(question)
    if (this.#lane.transactionMax > 1) return this.#rcpt(to)
    const reset = this.#session.rset()
    if (!this.#session.pipelining) await reset
    const mail = this.#session.mail(this.#sender)
    if (!this.#session.pipelining) await mail
    const rcpt = this.#rcpt(to)
    const refused = this.#mailAnswer(await mail) !== null
    const reply = await rcpt
    this.#transactions++
    return refused ? { broken: 'closed', stage: 'mail', detail: 'no transaction' } : reply
  }

  #unguessable(question: Q): string {
    return `${unguessableName(this.#lane.options.world.random)}@${question.address.domain.ascii}`
  }

  /** One recipient, pipelining, room for two in the transaction, and nothing known of the domain. */
  #asksTogether(batch: Q[]): boolean {
    const { single, catchAll } = this.#lane.options
    const [question] = batch
    if (!single || question === undefined || batch.length > 1) return false
    const known = question.catchAll ?? catchAll.recall(question.address.domain.ascii)
    return known === null && this.#session.pipelining && this.#lane.transactionMax > 1
  }

  #settle(question: Q, answer: Answer, extra: { catchAll?: boolean | null } = {}) {
    this.#lane.settle(question, answer, { ...this.#facts(), ...extra })
  }

  #facts() {
    const { host, ip, connectMs } = this.#opened
    return { host, ip, connectMs, tls: this.#session.secured }
  }
}

/** A refused or failed question about a name that nobody has is no evidence (neither yes nor no). */
function catchAllFrom(outcome: Reply | Broken): boolean | null {
  if (isBroken(outcome)) return null
  const answer = classify('rcpt', outcome)
  if (answer.kind === 'accepted') return true
  return answer.kind === 'rejected' && answer.why !== 'full' ? false : null
}

function isTooMany(outcome: Reply | Broken): boolean {
  if (isBroken(outcome)) return false
  const answer = classify('rcpt', outcome)
  return answer.kind === 'deferred' && answer.why === 'too-many'
}

/** What is left when a pause is too long to be waited out here. */
function heldBack(waitMs: number, aborted: boolean): Answer {
  if (aborted) return TIME_RAN_OUT
  return {
    kind: 'deferred',
    why: 'rate',
    retryAfterMs: Math.ceil(waitMs / SECOND) * SECOND,
    stage: 'connect',
    reply: {
      code: 421,
      enhanced: null,
      text: `not asked: this operator wants a pause of ${Math.ceil(waitMs / SECOND)} seconds`,
    },
  }
}
