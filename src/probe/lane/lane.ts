import type { Answer } from '../../smtp/answer.ts'
import type { CatchAllMemory } from '../catch-all.ts'
import type { ProbeWorld } from '../egress/egress.ts'
import type { WayOut } from '../egress/way-out.ts'
import type { Pace, Permit } from '../pace.ts'
import type { LanePlan, Question } from '../plan.ts'
import { ConnectionPermits } from './connection-permits.ts'
import { Conversation } from './conversation.ts'
import { Dialogue } from './dialogue.ts'
import type { DomainRefusals } from './domain-refusals.ts'
import type { HostMemory } from './host-memory.ts'
import type { ProbeListener } from './listener.ts'
import { type Held, openSession, type Unopened } from './open-session.ts'
import { heldBack, LED_NOWHERE, OUT_OF_STEP, TIME_RAN_OUT, WITHOUT_TLS } from './outcome.ts'
import { type WithheldAnswer, WithheldAnswers } from './withheld.ts'

/** What asking brought for one recipient, with the facts of the run. */
export type Probed = {
  readonly answer: Answer
  /** Whether the domain takes mail for everybody; null: not asked, or it could not be told. */
  readonly catchAll: boolean | null
  /** The egress that asked, or would have. */
  readonly egress: string
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

export type ProbeOptions<Q extends Question> = {
  /** Ends every conversation at once. */
  readonly signal: AbortSignal
  /** Lets the transaction under way end; what was not asked is handed back. */
  readonly drain: AbortSignal
  /** One address that somebody waits for: the unguessable recipient goes in the same write as the real one. */
  readonly single: boolean
  /** Several addresses that somebody waits for: as a single one, they take no place of lists. */
  readonly urgent?: boolean
  /** How long a pause may be waited out, in ms, before what is left is handed back as deferred. */
  readonly patienceMs: number
  readonly dialogue: boolean
  /** Hears of calls and lines as they come. */
  readonly listener?: ProbeListener | null
  /** Called once for each question, when the replies of its connection are known to be in step. */
  readonly onProbed: (question: Q, probed: Probed) => void
  /**
   * Called in place of `onProbed` for a question whose exchanger's address has its turn later: it is to be
   * asked again in `delayMs`. Left out: the turn is waited for, however long that takes.
   */
  readonly onTurnLater?: (question: Q, delayMs: number) => void
}

export type LaneOptions<Q extends Question> = ProbeOptions<Q> & {
  readonly world: ProbeWorld
  readonly operator: string
  readonly pace: Pace
  readonly catchAll: CatchAllMemory
  /** When it is known what other processes found of the domains; null: there is nothing to learn. Never rejects. */
  readonly learned: Promise<void> | null
  readonly hosts: HostMemory
  readonly domains: DomainRefusals
  readonly wayOut: WayOut
  /** Called with the end of each connection, which may come after the last answer. */
  readonly onFarewell: (closed: Promise<void>) => void
}

/** What one connection came to: what ended it, when that was not its natural end, and who was spoken with. */
type Visit = {
  readonly lost: Answer | null
  readonly facts: Facts
  readonly farewell: Promise<void>
  /** The questions without an answer are asked again at once, in the way that this host wants. */
  readonly isAskedAgain?: boolean
}

/** Conversations in a row that may end without one answer before the rest is given up. */
const FRUITLESS_MAX = 2

/** Walks the questions of one set of exchangers, conversation after conversation, at the operator's pace. */
export class Lane<Q extends Question> {
  readonly #plan: LanePlan<Q>
  readonly #options: LaneOptions<Q>
  #pending: Set<Q>
  /** Null while no conversation is under way. */
  #withheld: WithheldAnswers<Q> | null = null
  /** Replies were out of step: no further connection pipelines. */
  #isLockStep = false
  /** The refusal by which a host demanded TLS, where QUIT was said by then. */
  #tlsDemand: { readonly answer: Answer; readonly facts: Facts } | null = null
  /** Recipients that this host takes in one transaction, as far as it has told us. */
  #transactionMax: number
  #dialogue = new Dialogue(false, null)

  constructor(plan: LanePlan<Q>, options: LaneOptions<Q>) {
    this.#plan = plan
    this.#options = options
    this.#pending = new Set(plan.questions)
    this.#transactionMax = options.pace.row.recipientsPerTransaction
  }

  /**
   * Resolves when every question has its answer. The farewell of the last connection may go on behind it;
   * until it is over the connection keeps its place in the pace.
   */
  async walk(): Promise<void> {
    const { hosts, wayOut, signal, drain, single } = this.#options
    const stop = signal === drain ? signal : AbortSignal.any([signal, drain])
    const permits = this.#permits(stop)
    let fruitless = 0
    while (this.#pending.size > 0) {
      if (stop.aborted) return this.#settleUnasked(TIME_RAN_OUT)
      this.settleRefused()
      if (this.#pending.size === 0) return
      const down = wayOut.closedAnswer ?? hosts.downAnswer(this.#plan.key)
      if (down !== null) return this.#settleUnasked(down)
      const start = await permits.operator()
      if ('refusal' in start) return this.#settleUnasked(start.refusal)
      if ('waitMs' in start) return this.#settleUnasked(heldBack(start.waitMs, stop.aborted))
      const before = this.#pending.size
      const visit = await this.#visit(start.permit, permits)
      const { lost, facts, farewell, isAskedAgain = false } = visit
      if (this.#pending.size > 0) await farewell
      if (this.#pending.size < before) fruitless = 0
      if (this.#pending.size < before || lost === WITHOUT_TLS) continue
      if (isAskedAgain && !signal.aborted) continue
      if (wayOut.closedAnswer !== null) continue
      if (lost?.kind === 'silent' && !signal.aborted) hosts.failed(this.#plan.key, lost)
      if (++fruitless >= (single ? 1 : FRUITLESS_MAX)) this.settleRest(lost ?? LED_NOWHERE, facts)
    }
  }

  #permits(stop: AbortSignal): ConnectionPermits {
    const { world, pace, operator, single, urgent = false, patienceMs, onTurnLater } = this.#options
    return new ConnectionPermits({
      ...{ world, pace, operator, key: this.#plan.key, single, isUrgent: urgent, patienceMs },
      ...{ mayReturn: onTurnLater !== undefined, signal: stop },
    })
  }

  /** One connection, from dialling until its answers are told. */
  async #visit(permit: Permit, permits: ConnectionPermits): Promise<Visit> {
    const { world, hosts, wayOut, signal, dialogue, listener = null, onFarewell } = this.#options
    if (this.#tlsDemand === null) this.#dialogue = new Dialogue(dialogue, listener)
    const heard = this.#dialogue.asListener
    const opened = await openSession(world, this.#plan.route, {
      signal,
      onCall: heard && (call => heard.onCall(call)),
      onLine: heard && (line => heard.onLine(line)),
      startTls: host => hosts.wantsTls(host, world.startTls),
      wayOut,
      visit: { set: this.#plan.key },
      single: this.#options.single,
      sharesLimits: this.#plan.questions.every(({ sharesLimits = false }) => sharesLimits),
      ...{ permits, hosts },
    }).catch(error => {
      permit.release()
      throw error
    })
    if (!('session' in opened)) {
      permit.release()
      const farewell = Promise.resolve()
      if ('held' in opened) return { lost: this.#hold(opened.held), facts: {}, farewell }
      const { host, ip, asked } = opened
      return { lost: this.#notOpened(opened), facts: { host, ip, asked }, farewell }
    }
    const close = () => opened.session.close()
    signal.addEventListener('abort', close, { once: true })
    if (signal.aborted) close()
    if (this.#options.learned !== null) await this.#options.learned
    const { session, host } = opened
    if (session.pipelining && (this.#isLockStep || hosts.isOutOfStep(host))) {
      session.stopPipelining()
      this.#dialogue.note(`PIPELINING is not used: replies of ${host} were out of step`)
    }
    const conversation = new Conversation(this, opened)
    const withheld = new WithheldAnswers<Q>()
    this.#withheld = withheld
    let lost: Answer | null = null
    let farewell = Promise.resolve()
    let isInStep = false
    try {
      lost = await conversation.run()
    } finally {
      farewell = conversation.quit().finally(() => {
        signal.removeEventListener('abort', close)
        opened.permit.release()
        permit.release()
      })
      onFarewell(farewell)
      isInStep = await session.inStep
      if (isInStep) conversation.confirm()
      this.#withheld = null
      const again = await withheld.conclude(session.inStep, signal, one => this.#tell(one))
      this.#pending = new Set([...again, ...this.#pending])
    }
    const isAskedAgain = conversation.isAskedAgain || (!isInStep && session.pipelining)
    if (!isInStep && session.pipelining) this.stopPipelining(host)
    return {
      lost: isInStep ? lost : (lost ?? OUT_OF_STEP),
      facts: conversation.facts,
      farewell,
      isAskedAgain,
    }
  }

  /** No address may be dialled now: whoever is left is asked later, or told of the pause. */
  #hold(held: Held): null {
    const { signal, drain, onTurnLater } = this.#options
    if ('turnInMs' in held && onTurnLater !== undefined) {
      const pending = this.#pending
      this.#pending = new Set()
      for (const question of pending) onTurnLater(question, held.turnInMs)
    } else if ('refusal' in held) this.#settleUnasked(held.refusal)
    else {
      const waitMs = 'waitMs' in held ? held.waitMs : held.turnInMs
      this.#settleUnasked(heldBack(waitMs, signal.aborted || drain.aborted))
    }
    return null
  }

  #notOpened({ answer, cutShort, ...where }: Unopened): Answer | null {
    const { hosts, wayOut, pace, world } = this.#options
    const demand = this.#tlsDemand
    if (demand !== null && (answer.stage === 'starttls' || answer.stage === 'ehlo')) {
      // TLS cannot be put on: what the server said without it is the answer.
      this.settleRest(demand.answer, demand.facts)
      return demand.answer
    }
    if (answer.kind === 'silent') {
      const optional = answer.why === 'tls' && where.host !== null && hosts.tlsFailed(where.host)
      if (optional && !this.#options.signal.aborted) return WITHOUT_TLS
      // A name without an address, or with a forbidden one, does not change by asking again at once.
      const final = answer.why === 'no-address' || answer.why === 'not-public'
      // No fault of these exchangers: who is left is told so in `walk`.
      if (!final && wayOut.closedAnswer !== null) return answer
      if (final || this.#options.single || this.#options.signal.aborted) {
        if (!cutShort) hosts.failed(this.#plan.key, answer)
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

  // What follows is for the conversation at hand.

  get options(): LaneOptions<Q> {
    return this.#options
  }

  get pending(): ReadonlySet<Q> {
    return this.#pending
  }

  get transactionMax(): number {
    return this.#transactionMax
  }

  /** The host takes no more than `max` recipients in one transaction. */
  narrow(max: number) {
    this.#transactionMax = Math.max(1, Math.min(this.#transactionMax, max))
  }

  /** We were refused at RCPT: that is the recipient's affair at first, then its domain's, then the operator's. */
  refusedAtRcpt({ address }: Q, answer: Answer) {
    const domain = address.domain.ascii
    const isRefusing = this.#options.domains.refused(domain, answer)
    // Words about our address, name or sender mean more than a policy, which may be about one mailbox.
    const isAboutUs = WHY_ABOUT_US.has(answer.why) || (isRefusing && answer.why === 'policy')
    if (isAboutUs) this.#options.pace.refusedByDomain(domain, answer)
  }

  notRefused({ address }: Q) {
    this.#options.domains.notRefused(address.domain.ascii)
  }

  /** Whether the domain of these questions, or its operator, refuses us. */
  isRefused([question]: readonly Q[]): boolean {
    const { domains, pace } = this.#options
    return pace.isRefused || domains.find(question?.address.domain.ascii ?? '') !== null
  }

  /** Whoever is left of a domain that refuses us is told so, unasked. */
  settleRefused() {
    if (this.#options.domains.isEmpty) return
    const byDomain = Map.groupBy(this.#pending, ({ address }) => address.domain.ascii)
    for (const [domain, questions] of byDomain) {
      const refusal = this.#options.domains.find(domain)
      if (refusal !== null) this.#settleUnasked(refusal.answer, questions)
    }
  }

  noteTlsDemand(answer: Answer, facts: Facts) {
    this.#tlsDemand = { answer, facts }
  }

  /**
   * Replies of this host are missing or too many: the next connections send one command at a time.
   */
  stopPipelining(host: string) {
    this.#isLockStep = true
    this.#options.hosts.markOutOfStep(host)
  }

  settle(
    question: Q,
    answer: Answer,
    facts: Facts,
    catchAllInStep: Promise<boolean> | null = null,
  ) {
    this.#pending.delete(question)
    const withheld = { question, answer, facts, catchAllInStep }
    if (this.#withheld === null) this.#tell(withheld)
    else this.#withheld.add(withheld)
  }

  #tell({ question, answer, facts }: WithheldAnswer<Q>) {
    if (answer.kind !== 'silent' && facts.asked !== false)
      this.#options.hosts.reached(this.#plan.key)
    this.#options.onProbed(question, {
      catchAll: question.catchAll,
      egress: this.#options.world.egress.name,
      host: null,
      ip: null,
      tls: false,
      connectMs: null,
      asked: true,
      ...facts,
      answer,
      dialogue: this.#dialogue.lines,
    })
  }

  settleRest(answer: Answer, facts: Facts) {
    for (const question of this.#pending) this.settle(question, answer, facts)
  }

  #settleUnasked(answer: Answer, questions: Iterable<Q> = this.#pending) {
    const { world, listener, signal } = this.#options
    const nowhere = { host: null, ip: null, port: world.smtpPort, dialled: false }
    if (!signal.aborted) listener?.onCall({ ...nowhere, answer })
    for (const question of questions) this.settle(question, answer, { asked: false })
  }
}

export type Facts = Partial<Omit<Probed, 'answer' | 'dialogue'>>

/** Refusals that name us: our address, our name, our sender. */
const WHY_ABOUT_US: ReadonlySet<Answer['why']> = new Set(['blocklist', 'rdns', 'sender'])
