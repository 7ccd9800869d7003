import type { ConnectionPermit, RateController } from '../rate-control/controller.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { CatchAllCache } from './catch-all.ts'
import { ConnectionPermits } from './connection-permits.ts'
import type { DomainBlocks } from './domain-blocks.ts'
import type { ProbeDeps } from './egress.ts'
import type { HostHealth } from './host-health.ts'
import type { MxGroupPlan, ProbeTarget } from './mx-groups.ts'
import { type HeldConnection, type OpenFailure, openSession } from './open-session.ts'
import type { OutboundReachability } from './outbound-reachability.ts'
import type { ProbeListener } from './probe-listener.ts'
import {
  DEADLINE_EXCEEDED,
  NO_RESULT,
  OUT_OF_STEP,
  WITHOUT_TLS,
  withheld,
} from './probe-outcome.ts'
import { Dialogue, SmtpProbe } from './smtp-probe.ts'
import { type WithheldOutcome, WithheldOutcomes } from './withheld-outcomes.ts'

/** What asking brought for one recipient, with the facts of the run. */
export type ProbeResult = {
  readonly answer: RecipientOutcome
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

export type ProbeOptions<Q extends ProbeTarget> = {
  /** Ends every conversation at once. */
  readonly signal: AbortSignal
  /** Lets the transaction under way end; what was not asked is handed back. */
  readonly drain: AbortSignal
  /** One address that somebody waits for: the unguessable recipient goes in the same write as the real one. */
  readonly single: boolean
  /** Several addresses that somebody waits for: as a single one, they take no place of lists. */
  readonly urgent?: boolean
  /** How long a pause may be waited out, in ms, before what is left is handed back as deferred. */
  readonly timeoutMs: number
  readonly dialogue: boolean
  /** Hears of calls and lines as they come. */
  readonly listener?: ProbeListener | null
  /** Called once for each question, when the replies of its connection are known to be in step. */
  readonly onProbed: (question: Q, probed: ProbeResult) => void
  /**
   * Called in place of `onProbed` for a question whose exchanger's address has its turn later: it is to be
   * asked again in `delayMs`. Left out: the turn is waited for, however long that takes.
   */
  readonly onTurnLater?: (question: Q, delayMs: number) => void
}

export type MxGroupProbeOptions<Q extends ProbeTarget> = ProbeOptions<Q> & {
  readonly deps: ProbeDeps
  readonly operator: string
  readonly rateController: RateController
  readonly catchAll: CatchAllCache
  /** When it is known what other processes found of the domains; null: there is nothing to learn. Never rejects. */
  readonly learned: Promise<void> | null
  readonly hosts: HostHealth
  readonly domains: DomainBlocks
  readonly reachability: OutboundReachability
  /** Called with the end of each connection, which may come after the last answer. */
  readonly onDrain: (closed: Promise<void>) => void
}

/** What one connection came to: what ended it, when that was not its natural end, and who was spoken with. */
type HostVisit = {
  readonly lost: RecipientOutcome | null
  readonly facts: ConnectionInfo
  readonly drain: Promise<void>
  /** The questions without an answer are asked again at once, in the way that this host wants. */
  readonly isRetried?: boolean
}

/** Conversations in a row that may end without one answer before the rest is given up. */
const FRUITLESS_MAX = 2

/** Walks the questions of one set of exchangers, conversation after conversation, at the operator's pace. */
export class MxGroupProbe<Q extends ProbeTarget> {
  readonly #plan: MxGroupPlan<Q>
  readonly #options: MxGroupProbeOptions<Q>
  #pending: Set<Q>
  /** Null while no conversation is under way. */
  #withheld: WithheldOutcomes<Q> | null = null
  /** Replies were out of step: no further connection pipelines. */
  #isLockStep = false
  /** The refusal by which a host demanded TLS, where QUIT was said by then. */
  #tlsDemand: { readonly answer: RecipientOutcome; readonly facts: ConnectionInfo } | null = null
  /** Recipients that this host takes in one transaction, as far as it has told us. */
  #transactionMax: number
  #dialogue = new Dialogue(false, null)

  constructor(plan: MxGroupPlan<Q>, options: MxGroupProbeOptions<Q>) {
    this.#plan = plan
    this.#options = options
    this.#pending = new Set(plan.questions)
    this.#transactionMax = options.rateController.row.recipientsPerTransaction
  }

  /**
   * Resolves when every question has its answer. The farewell of the last connection may go on behind it;
   * until it is over the connection keeps its place in the pace.
   */
  async run(): Promise<void> {
    const { hosts, reachability, signal, drain, single } = this.#options
    const stop = signal === drain ? signal : AbortSignal.any([signal, drain])
    const permits = this.#permits(stop)
    let fruitless = 0
    while (this.#pending.size > 0) {
      if (stop.aborted) return this.#settleUnasked(DEADLINE_EXCEEDED)
      this.settleRefused()
      if (this.#pending.size === 0) return
      const down = reachability.blockedOutcome ?? hosts.cachedFailure(this.#plan.key)
      if (down !== null) return this.#settleUnasked(down)
      const start = await permits.operator()
      if ('refusal' in start) return this.#settleUnasked(start.refusal)
      if ('waitMs' in start) return this.#settleUnasked(withheld(start.waitMs, stop.aborted))
      const before = this.#pending.size
      const visit = await this.#visit(start.permit, permits)
      const { lost, facts, drain, isRetried = false } = visit
      if (this.#pending.size > 0) await drain
      if (this.#pending.size < before) fruitless = 0
      if (this.#pending.size < before || lost === WITHOUT_TLS) continue
      if (isRetried && !signal.aborted) continue
      if (reachability.blockedOutcome !== null) continue
      if (lost?.kind === 'no-response' && !signal.aborted) hosts.failed(this.#plan.key, lost)
      if (++fruitless >= (single ? 1 : FRUITLESS_MAX))
        this.resolveRemaining(lost ?? NO_RESULT, facts)
    }
  }

  #permits(stop: AbortSignal): ConnectionPermits {
    const {
      deps,
      rateController,
      operator,
      single,
      urgent = false,
      timeoutMs,
      onTurnLater,
    } = this.#options
    return new ConnectionPermits({
      ...{
        deps,
        rateController,
        operator,
        key: this.#plan.key,
        single,
        isUrgent: urgent,
        timeoutMs,
      },
      ...{ isReturnable: onTurnLater !== undefined, signal: stop },
    })
  }

  /** One connection, from dialling until its answers are told. */
  async #visit(permit: ConnectionPermit, permits: ConnectionPermits): Promise<HostVisit> {
    const { deps, hosts, reachability, signal, dialogue, listener = null, onDrain } = this.#options
    if (this.#tlsDemand === null) this.#dialogue = new Dialogue(dialogue, listener)
    const received = this.#dialogue.asListener
    const opened = await openSession(deps, this.#plan.route, {
      signal,
      onCall: received && (call => received.onCall(call)),
      onLine: received && (line => received.onLine(line)),
      startTls: host => hosts.requiresTls(host, deps.startTls),
      reachability,
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
      const drain = Promise.resolve()
      if ('held' in opened) return { lost: this.#keepOpen(opened.held), facts: {}, drain }
      const { host, ip, asked } = opened
      return { lost: this.#notOpened(opened), facts: { host, ip, asked }, drain }
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
    const probe = new SmtpProbe(this, opened)
    const withheld = new WithheldOutcomes<Q>()
    this.#withheld = withheld
    let lost: RecipientOutcome | null = null
    let drain = Promise.resolve()
    let isInStep = false
    try {
      lost = await probe.run()
    } finally {
      drain = probe.quit().finally(() => {
        signal.removeEventListener('abort', close)
        opened.permit.release()
        permit.release()
      })
      onDrain(drain)
      isInStep = await session.inStep
      if (isInStep) probe.confirm()
      this.#withheld = null
      const again = await withheld.conclude(session.inStep, signal, one => this.#notify(one))
      this.#pending = new Set([...again, ...this.#pending])
    }
    const isRetried = probe.isRetried || (!isInStep && session.pipelining)
    if (!isInStep && session.pipelining) this.stopPipelining(host)
    return {
      lost: isInStep ? lost : (lost ?? OUT_OF_STEP),
      facts: probe.facts,
      drain,
      isRetried,
    }
  }

  /** No address may be dialled now: whoever is left is asked later, or told of the pause. */
  #keepOpen(keptOpen: HeldConnection): null {
    const { signal, drain, onTurnLater } = this.#options
    if ('retryInMs' in keptOpen && onTurnLater !== undefined) {
      const pending = this.#pending
      this.#pending = new Set()
      for (const question of pending) onTurnLater(question, keptOpen.retryInMs)
    } else if ('refusal' in keptOpen) this.#settleUnasked(keptOpen.refusal)
    else {
      const waitMs = 'waitMs' in keptOpen ? keptOpen.waitMs : keptOpen.retryInMs
      this.#settleUnasked(withheld(waitMs, signal.aborted || drain.aborted))
    }
    return null
  }

  #notOpened({ answer, cutShort, ...where }: OpenFailure): RecipientOutcome | null {
    const { hosts, reachability, rateController, deps } = this.#options
    const demand = this.#tlsDemand
    if (demand !== null && (answer.stage === 'starttls' || answer.stage === 'ehlo')) {
      // TLS cannot be put on: what the server said without it is the answer.
      this.resolveRemaining(demand.answer, demand.facts)
      return demand.answer
    }
    if (answer.kind === 'no-response') {
      const optional = answer.why === 'tls' && where.host !== null && hosts.tlsFailed(where.host)
      if (optional && !this.#options.signal.aborted) return WITHOUT_TLS
      // A name without an address, or with a forbidden one, does not change by asking again at once.
      const final = answer.why === 'no-address' || answer.why === 'not-public'
      // No fault of these exchangers: who is left is told so in `walk`.
      if (!final && reachability.blockedOutcome !== null) return answer
      if (final || this.#options.single || this.#options.signal.aborted) {
        if (!cutShort) hosts.failed(this.#plan.key, answer)
        this.resolveRemaining(answer, where)
      }
      return answer
    }
    deps.log.warn('a mail server would not have us', {
      host: where.host,
      kind: answer.kind,
      why: answer.why,
      code: answer.reply.code,
    })
    if (answer.kind === 'blocked') rateController.refused(answer)
    if (answer.kind === 'deferred') rateController.throttled(answer.retryAfterMs)
    this.resolveRemaining(answer, where)
    return answer
  }

  // What follows is for the conversation at hand.

  get options(): MxGroupProbeOptions<Q> {
    return this.#options
  }

  get pending(): ReadonlySet<Q> {
    return this.#pending
  }

  get transactionMax(): number {
    return this.#transactionMax
  }

  /** The host takes no more than `max` recipients in one transaction. */
  reduceBatchSize(max: number) {
    this.#transactionMax = Math.max(1, Math.min(this.#transactionMax, max))
  }

  /** We were refused at RCPT: that is the recipient's affair at first, then its domain's, then the operator's. */
  refusedAtRcpt({ address }: Q, answer: RecipientOutcome) {
    const domain = address.domain.ascii
    const isRefusing = this.#options.domains.refused(domain, answer)
    // Words about our address, name or sender mean more than a policy, which may be about one mailbox.
    const isAboutUs = WHY_ABOUT_US.has(answer.why) || (isRefusing && answer.why === 'policy')
    if (isAboutUs) this.#options.rateController.refusedByDomain(domain, answer)
  }

  notRefused({ address }: Q) {
    this.#options.domains.notRefused(address.domain.ascii)
  }

  /** Whether the domain of these questions, or its operator, refuses us. */
  isRefused([question]: readonly Q[]): boolean {
    const { domains, rateController } = this.#options
    return rateController.isRefused || domains.find(question?.address.domain.ascii ?? '') !== null
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

  noteTlsDemand(answer: RecipientOutcome, facts: ConnectionInfo) {
    this.#tlsDemand = { answer, facts }
  }

  /**
   * Replies of this host are missing or too many: the next connections send one command at a time.
   */
  stopPipelining(host: string) {
    this.#isLockStep = true
    this.#options.hosts.markOutOfStep(host)
  }

  resolve(
    question: Q,
    answer: RecipientOutcome,
    facts: ConnectionInfo,
    catchAllInStep: Promise<boolean> | null = null,
  ) {
    this.#pending.delete(question)
    const withheld = { question, answer, facts, catchAllInStep }
    if (this.#withheld === null) this.#notify(withheld)
    else this.#withheld.add(withheld)
  }

  #notify({ question, answer, facts }: WithheldOutcome<Q>) {
    if (answer.kind !== 'no-response' && facts.asked !== false)
      this.#options.hosts.markReachable(this.#plan.key)
    this.#options.onProbed(question, {
      catchAll: question.catchAll,
      egress: this.#options.deps.egress.name,
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

  resolveRemaining(answer: RecipientOutcome, facts: ConnectionInfo) {
    for (const question of this.#pending) this.resolve(question, answer, facts)
  }

  #settleUnasked(answer: RecipientOutcome, questions: Iterable<Q> = this.#pending) {
    const { deps, listener, signal } = this.#options
    const nowhere = { host: null, ip: null, port: deps.smtpPort, dialled: false }
    if (!signal.aborted) listener?.onCall({ ...nowhere, answer })
    for (const question of questions) this.resolve(question, answer, { asked: false })
  }
}

export type ConnectionInfo = Partial<Omit<ProbeResult, 'answer' | 'dialogue'>>

/** Refusals that name us: our address, our name, our sender. */
const WHY_ABOUT_US: ReadonlySet<RecipientOutcome['why']> = new Set(['blocklist', 'rdns', 'sender'])
