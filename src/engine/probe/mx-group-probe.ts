import { onAbort, orOnAbort } from '../../platform/abort.ts'
import { SECOND } from '../../platform/clock.ts'
import { groupBy } from '../../platform/es2024.ts'
import { networkOf } from '../../platform/ip.ts'
import { writeLog } from '../../platform/log.ts'
import { wasSuspended } from '../../platform/suspension.ts'
import { wireAddress } from '../address/address.ts'
import { withDeadline } from '../deadline.ts'
import { RecipientLog } from '../learned-replies/recipient-log.ts'
import { softwareIn } from '../learned-replies/server-software.ts'
import type { RateController } from '../rate-control/controller.ts'
import { type ConnectionPermit, releaseAll } from '../rate-control/permit-queue.ts'
import { getUncertainty, type RecipientOutcome, type Stage } from '../smtp/classify-reply.ts'
import { ENGINE_LOG } from '../telemetry.ts'
import { ConnectionPermits } from './connection-permits.ts'
import { Dialogue } from './dialogue.ts'
import type { Timeouts } from './egress.ts'
import { isDecidedByServer, isForeignGreeting } from './interception.ts'
import type { EgressState, MxGroupState, SecondLook } from './mx-group-state.ts'
import {
  catchAllKey,
  equalHosts,
  hostsAt,
  type MxGroupPlan,
  type ProbeTarget,
  serverKeys,
} from './mx-groups.ts'
import { isNotHosted } from './mx-hosts.ts'
import {
  type HeldConnection,
  type OpenFailure,
  type OpenSession,
  openSession,
} from './open-session.ts'
import type { ProbeOptions, ProbeSink } from './probe-options.ts'
import {
  type ConnectionInfo,
  DEADLINE_EXCEEDED,
  isThrottling,
  NO_RESULT,
  OUT_OF_STEP,
  type ProbeResult,
  toHeldOutcome,
  WITHOUT_TLS,
} from './probe-outcome.ts'
import { SmtpProbe, type SmtpProbeEnd } from './smtp-probe.ts'
import { type WithheldOutcome, WithheldOutcomes } from './withheld-outcomes.ts'
import type { ServerKeys } from './witnesses.ts'

/** How one connection ended, and the host it was opened to. */
type SessionResult = {
  /** The outcome that ended the connection early; null if it ran to its end. */
  readonly failure: RecipientOutcome | null
  readonly facts: ConnectionInfo
  readonly drain: Promise<void>
  /** True if unanswered targets are retried at once, with settings that suit this host. */
  readonly isRetried?: boolean
}

/**
 * How long the caller of a single verification, or another session of a list, waits for a second
 * look, whose result only refines its own: one more connection to a server at some distance.
 */
const SECOND_LOOK_MS = 3_000
/**
 * How long a single verification waits for the greetings of two other providers: twice what a distant
 * one takes. Later ones know the result.
 */
const SINGLE_CHECK_MS = 3_000

/** A server that refuses one connection more has room when another one closes. */
const ONE_TOO_MANY_DELAY_MS = SECOND

/** A session that has sent QUIT, with the answers that wait for the reply to it. */
type EndedSession<Q extends ProbeTarget> = {
  readonly opened: OpenSession
  readonly probe: SmtpProbe<Q>
  readonly log: RecipientLog
  readonly withheld: WithheldOutcomes<Q>
  readonly isInStep: boolean
}

/** Outcomes that wait for a second look at their domain. */
type PendingLook<Q extends ProbeTarget> = SecondLook<Q> & {
  readonly log: RecipientLog
  readonly outcomes: WithheldOutcome<Q>[]
  readonly onEnd: () => void
}

/** Consecutive sessions without a single answer after which the remaining targets are given up. */
const FRUITLESS_SESSIONS_MAX = 2
/**
 * The same if the server goes silent at RCPT: after the second session that recipient alone is given
 * up, and the third shows whether the server answers others.
 */
const SILENT_SESSIONS_MAX = 3
/** The same if the server has answered others of these targets: its silence is about few of them. */
const SILENT_SESSIONS_AFTER_ANSWER_MAX = 6
/**
 * The same for sessions that were repeated with other settings or because the outbound port seemed
 * to be blocked: more than any domain needs, since each session tells more about its hosts.
 */
const REPEATED_SESSIONS_MAX = 12

export type MxGroupProbeDeps = {
  readonly egress: EgressState
  readonly operator: string
  readonly rateController: RateController
  /**
   * Resolves when the catch-all results of other processes are loaded; null if there are none to
   * load. Never rejects.
   */
  readonly loaded: Promise<void> | null
  /** Takes a promise for the close of each connection, which may follow the last answer. */
  readonly onDrain: (closed: Promise<void>) => void
}

/** Probes the targets of one MX group, session after session, within the operator's rate limits. */
export class MxGroupProbe<Q extends ProbeTarget> implements MxGroupState<Q> {
  readonly egress: EgressState
  readonly operator: string
  readonly rateController: RateController
  readonly options: ProbeOptions
  readonly #plan: MxGroupPlan<Q>
  readonly #deps: MxGroupProbeDeps
  readonly #sink: ProbeSink<Q, ProbeResult>
  #pending: Set<Q>
  /** Null while no session is open. */
  #withheld: WithheldOutcomes<Q> | null = null
  /** By domain. */
  readonly #looks = new Map<string, PendingLook<Q>>()
  /** Ends a second look that takes too long; only for a single verification. */
  readonly #lookLimit: AbortController | null
  #cancelLookTimer = () => {}
  /** Aborts with that of the options, and when a second look takes too long. */
  readonly #signal: AbortSignal
  /** Also aborts when the probe drains: no further connection is opened, and none is awaited. */
  readonly #stop: AbortSignal
  /** True once replies were out of step: later connections of this group do not pipeline. */
  #isLockStep = false
  /** The reply by which a host demanded TLS, if it arrived after QUIT had been sent. */
  #tlsDemand: { readonly answer: RecipientOutcome; readonly facts: ConnectionInfo } | null = null
  /** The most recipients per transaction that the operator and this host are known to accept. */
  #transactionMax: number
  #dialogue = new Dialogue(false, null)
  /** True after a long wait for a greeting or for the reply to EHLO: the next wait is short. */
  #wasSilent = false
  #isInDoubt = false
  /** The target at which the server went silent in the last connection. */
  #silentAt: Q | null = null
  /** When the last connection was started, monotonic ms. */
  startedAt = Number.NEGATIVE_INFINITY

  constructor(
    plan: MxGroupPlan<Q>,
    deps: MxGroupProbeDeps,
    sink: ProbeSink<Q, ProbeResult>,
    options: ProbeOptions,
  ) {
    const { signal, drain, single } = options
    this.egress = deps.egress
    this.operator = deps.operator
    this.rateController = deps.rateController
    this.options = options
    this.#plan = plan
    this.#deps = deps
    this.#sink = sink
    this.#pending = new Set(plan.targets)
    this.#lookLimit = single ? new AbortController() : null
    this.#signal =
      this.#lookLimit === null ? signal : AbortSignal.any([signal, this.#lookLimit.signal])
    if (this.#lookLimit === null) this.#stop = drain
    else this.#stop = signal === drain ? this.#signal : AbortSignal.any([this.#signal, drain])
    this.#transactionMax = this.rateController.row.recipientsPerTransaction
  }

  /**
   * Resolves when every target has its answer. The last connection may still be closing then; it
   * holds its permit until it is closed.
   */
  async run(): Promise<void> {
    try {
      const { deps, hosts, reachability } = this.egress
      const { signal, single } = this.options
      const stop = this.#stop
      const permits = this.#permits(stop)
      let fruitlessSessions = 0
      let repeatedSessions = 0
      let hasAnswered = false
      while (this.#pending.size > 0 || this.#looks.size > 0) {
        if (stop.aborted) return this.#resolveUnprobed(DEADLINE_EXCEEDED)
        this.resolveBlocked()
        if (this.#pending.size === 0 && this.#looks.size === 0) return
        const outage = reachability.blockedOutcome
        if (outage !== null) return this.#resolveUnprobed(outage)
        const down = hosts.cachedFailure(this.#plan.key)
        if (down !== null && !(down.isBrief && !this.#isAwaited)) {
          const facts = { asked: false, isLost: down.isLost }
          return this.#resolveUnprobed(down.answer, this.#pending, facts)
        }
        const acquired = await permits.operator()
        if ('refusal' in acquired) return this.#resolveUnprobed(acquired.refusal)
        if ('waitMs' in acquired)
          return this.#resolveUnprobed(toHeldOutcome(acquired, stop.aborted))
        const before = this.#pending.size
        this.startedAt = deps.clock.monotonicNow()
        const silentBefore = this.#silentAt
        this.#silentAt = null
        const look = this.#takeLook()
        const running = this.#runConnection(acquired.permit, permits, look)
        const result = await (look === null ? running : running.finally(() => this.#conclude(look)))
        const { failure, facts, isRetried = false } = result
        if (this.#pending.size > 0 || this.#looks.size > 0) await result.drain
        if (this.#pending.size < before) {
          fruitlessSessions = 0
          repeatedSessions = 0
          hasAnswered = true
          continue
        }
        const isBlocked = reachability.blockedOutcome !== null
        const isOtherwise = before === 0 || failure === WITHOUT_TLS || isBlocked
        const isRepeated = isOtherwise || (isRetried && !signal.aborted)
        if (isRepeated && ++repeatedSessions < REPEATED_SESSIONS_MAX) continue
        const isCut = this.options.drain.aborted
        const silentAt = this.#silentAt
        const isOfTarget = silentAt !== null && (hasAnswered || fruitlessSessions === 0)
        if (failure?.kind === 'no-response' && !isCut && !isOfTarget)
          this.#markFailed(failure, facts.isLost)
        this.#wasSilent = failure?.why === 'timeout' && isBeforeMail(failure.stage)
        if (isRepeated) return this.resolveRemaining(failure ?? NO_RESULT, facts)
        let sessionsMax = FRUITLESS_SESSIONS_MAX
        if (silentAt !== null)
          sessionsMax = hasAnswered ? SILENT_SESSIONS_AFTER_ANSWER_MAX : SILENT_SESSIONS_MAX
        if (++fruitlessSessions >= (single ? 1 : sessionsMax))
          this.resolveRemaining(failure ?? NO_RESULT, facts)
        else if (silentAt !== null && silentAt === silentBefore)
          this.resolve(silentAt, failure ?? NO_RESULT, facts)
      }
    } finally {
      this.#cancelLookTimer()
      for (const look of this.#looks.values()) this.#conclude(look)
    }
  }

  /** Whether a caller waits for the results. */
  get #isAwaited(): boolean {
    const { single, urgent } = this.options
    return single || urgent
  }

  /** Whether it waits for slow servers. */
  get #isPatient(): boolean {
    return !this.#isAwaited && !this.#wasSilent
  }

  get timeouts(): Timeouts {
    const { awaited, list } = this.egress.deps.timeouts
    return this.#isPatient ? list : awaited
  }

  #permits(stop: AbortSignal): ConnectionPermits {
    const { deps } = this.egress
    const { single, urgent, timeoutMs } = this.options
    return new ConnectionPermits({
      deps,
      rateController: this.rateController,
      operator: this.operator,
      key: this.#plan.key,
      single,
      isUrgent: urgent,
      timeoutMs,
      isReturnable: !single,
      signal: stop,
    })
  }

  /** Returns the second look that the next connection takes; null if there is none. */
  #takeLook(): PendingLook<Q> | null {
    if (this.#looks.size === 0) return null
    const [look = null] = this.#looks.values()
    if (look !== null) this.#looks.delete(look.target.address.domain.ascii)
    return look
  }

  /** Runs one connection, from dialing until its answers have been emitted. */
  async #runConnection(
    permit: ConnectionPermit,
    permits: ConnectionPermits,
    look: SecondLook<Q> | null,
  ): Promise<SessionResult> {
    const { dialogue, listener, single } = this.options
    if (this.#tlsDemand === null && look === null) this.#dialogue = new Dialogue(dialogue, listener)
    let opened: Awaited<ReturnType<typeof openSession>>
    try {
      opened = await openSession(this.egress, this.#plan, {
        // No recipient has been named yet, so a drain loses nothing here.
        signal: this.#stop,
        listener: this.#dialogue.asListener,
        single,
        timeouts: this.timeouts,
        isPatient: this.#isPatient,
        permits,
      })
    } catch (error) {
      permit.release()
      throw error
    }
    if ('session' in opened) return this.#runSession(opened, permit, look)
    const { otherSessions } = this.rateController
    permit.release()
    if ('held' in opened)
      return { failure: this.#onHeld(opened.held), facts: {}, drain: Promise.resolve() }
    return this.#onNotOpened(opened, otherSessions)
  }

  async #onNotOpened(opened: OpenFailure, otherSessions: number): Promise<SessionResult> {
    const drain = Promise.resolve()
    const { answer, host, ip, isLost } = opened
    if (opened.isOneTooMany && answer.kind === 'no-response') {
      this.rateController.limitReached(otherSessions)
      return { failure: this.#onHeld({ retryInMs: ONE_TOO_MANY_DELAY_MS }), facts: {}, drain }
    }
    if (answer.kind === 'rejected' && host !== null) {
      if (isForeignGreeting(answer.reply.text, host)) await this.#checkInterception()
      const failure = this.egress.reachability.interceptedOutcome
      if (failure !== null) return { failure, facts: { asked: false }, drain }
    }
    // A server that only refuses a further connection, or asks to slow down, was not asked about
    // these recipients.
    const isServing = otherSessions > 0 || this.rateController.isServing
    const asked = opened.asked && !(isServing && isThrottling(answer))
    const failure = this.#openFailed({ ...opened, asked }, otherSessions)
    return { failure, facts: { host, ip, asked, isLost }, drain }
  }

  /** Runs the transactions of a session, and decides at its end which answers count. */
  async #runSession(
    opened: OpenSession,
    permit: ConnectionPermit,
    look: SecondLook<Q> | null,
  ): Promise<SessionResult> {
    const { session, host } = opened
    const unsubscribe = onAbort(this.#signal, () => session.close())
    const log = this.#createLog(opened)
    const probe = new SmtpProbe(this, opened, log)
    const withheld = new WithheldOutcomes<Q>()
    this.#withheld = withheld
    let end: SmtpProbeEnd | null = null
    let drain = Promise.resolve()
    let isInStep = false
    try {
      await this.#prepareSession(opened)
      end = await probe.run(look)
    } finally {
      drain = probe.quit().finally(() => {
        unsubscribe()
        releaseAll([opened.permit, permit])
      })
      this.#deps.onDrain(drain)
      isInStep = await session.inStep
      if (isInStep && end?.isClean === true) {
        this.rateController.succeeded()
        opened.permit.succeeded()
      }
      await this.#concludeSession({ opened, probe, log, withheld, isInStep })
    }
    const isOutOfStep = !isInStep && session.pipelining
    if (isOutOfStep) this.stopPipelining(host)
    return {
      failure: isInStep ? end.failure : (end.failure ?? OUT_OF_STEP),
      facts: probe.facts,
      drain,
      isRetried: end.isRetried || isOutOfStep,
    }
  }

  #createLog({ session, ip }: OpenSession): RecipientLog {
    const software = softwareIn(session.banner)
    const server = { operator: this.operator, software, subnet: networkOf(ip) }
    return new RecipientLog(this.egress.learned, server, this.#dialogue.asListener !== null)
  }

  /** Waits for what other processes know, and selects how commands are sent. */
  async #prepareSession({ session, host }: OpenSession): Promise<void> {
    const { learned, witnesses, hosts } = this.egress
    for (const loading of [this.#deps.loaded, learned.load(), witnesses.load()]) {
      if (loading !== null) await loading
    }
    if (!session.pipelining || !(this.#isLockStep || hosts.isOutOfStep(host))) return
    session.stopPipelining()
    this.#dialogue.note(`PIPELINING disabled: replies from ${host} were out of step`)
  }

  /** Emits the answers of a session that count, after the tests that explain them. */
  async #concludeSession({ opened, probe, log, withheld, isInStep }: EndedSession<Q>) {
    const { reachability } = this.egress
    // A proxy of the network proves nothing about the domains and the hosts.
    if (this.#isSuspicious(opened, withheld)) await this.#checkInterception()
    const intercepted = reachability.interceptedOutcome
    const isGenuine = isInStep && intercepted === null
    if (isGenuine) log.conclude()
    probe.conclude(isGenuine)
    if (log.hasRefusals && isGenuine && !this.options.single) await this.#otherTests(log)
    this.#withheld = null
    const inDoubt: Q[] = []
    const retried = await withheld.conclude(opened.session.inStep, this.#signal, one => {
      if (intercepted !== null)
        this.#notify({ ...one, answer: intercepted, facts: { asked: false } })
      else if (log.isInDoubt(wireAddress(one.target.address))) inDoubt.push(one.target)
      else if (opened.unreached !== null && isNotHosted(one.answer)) {
        this.egress.hosts.markNotServing(this.#plan.key, opened.host)
        const { answer, ...facts } = opened.unreached
        this.#notify({ ...one, answer, facts })
      } else this.#settle(one, log)
    })
    this.#isInDoubt = inDoubt.length > 0
    retried.push(...inDoubt)
    if (retried.length > 0) this.#pending = new Set([...retried, ...this.#pending])
  }

  async #checkInterception(): Promise<void> {
    const { deps, reachability } = this.egress
    const limitMs = this.options.single ? SINGLE_CHECK_MS : null
    const limit = withDeadline(deps.clock, limitMs, [this.#signal])
    await reachability.checkInterception(limit.signal)
    limit.done()
  }

  /** Whether something else than the mail server may have answered, and its answers would count. */
  #isSuspicious({ session, host }: OpenSession, withheld: WithheldOutcomes<Q>): boolean {
    const { single } = this.options
    const mayMislead = ({ target, answer, facts }: WithheldOutcome<Q>) => {
      const known = this.catchAllOf(target)
      return isDecidedByServer(answer, { tested: facts.catchAll ?? null, known }, single)
    }
    return withheld.some(mayMislead) && isForeignGreeting(session.banner, host)
  }

  /**
   * Waits for tests and second looks of other sessions of a list, which may explain the refusals of
   * this one. Two sessions that wait for each other stop doing so after a moment.
   */
  async #otherTests(log: RecipientLog): Promise<void> {
    const { catchAll, learned, deps } = this.egress
    const { signal } = this.options
    await Promise.all(
      log.unexplainedDomains().map(async domain => {
        await catchAll.settled(domain, signal)
        const look = this.#looks.has(domain) ? null : learned.secondLook(domain)
        if (look === null) return
        const limit = withDeadline(deps.clock, SECOND_LOOK_MS, [signal])
        await orOnAbort(look, limit.signal, null)
        limit.done()
      }),
    )
  }

  /**
   * Notifies the caller of an outcome, as the log of its connection explains it, or keeps it for a
   * second look.
   */
  #settle(withheld: WithheldOutcome<Q>, log: RecipientLog) {
    const { target } = withheld
    const domain = target.address.domain.ascii
    const explained = this.#explain(withheld, log)
    const look = isUndecided(explained) ? this.#lookAgainAt(domain, target, log) : null
    if (look === null) this.#notify(explained)
    else look.outcomes.push(withheld)
  }

  /** Notifies the caller of the outcomes that waited for a second look. */
  #conclude({ outcomes, log, onEnd }: PendingLook<Q>) {
    onEnd()
    for (const withheld of outcomes) this.#notify(this.#explain(withheld, log))
  }

  #explain(withheld: WithheldOutcome<Q>, log: RecipientLog): WithheldOutcome<Q> {
    const { target, facts } = withheld
    const { catchAll } = this.egress
    const domain = target.address.domain.ascii
    const answer = log.decide(domain, wireAddress(target.address), withheld.answer)
    if (answer !== withheld.answer) {
      this.notBlocked(target)
      return { ...withheld, answer }
    }
    if (answer.kind !== 'accepted' || facts.catchAll !== null) return withheld
    const key = this.catchAllKey(target, facts.host ?? null)
    const known = catchAll.get(key) ?? log.catchAll(domain)
    if (known === null) return withheld
    if (catchAll.get(key) === null) catchAll.set(key, known)
    return { ...withheld, facts: { ...facts, catchAll: known } }
  }

  /** Returns the second look at a domain; null if there is none. */
  #lookAgainAt(domain: string, target: Q, log: RecipientLog): PendingLook<Q> | null {
    const { learned, deps } = this.egress
    const planned = this.#looks.get(domain)
    if (planned !== undefined) return planned
    const witnesses = log.secondLook(domain)
    if (this.options.drain.aborted || witnesses === null) return null
    const onEnd = learned.claimSecondLook(domain)
    if (onEnd === null) return null
    const look = { ...witnesses, target, log, onEnd, outcomes: [] }
    this.#looks.set(domain, look)
    const limit = this.#lookLimit
    if (limit !== null)
      this.#cancelLookTimer = deps.clock.after(SECOND_LOOK_MS, () => limit.abort())
    return look
  }

  /** No address may be dialed now: the remaining targets are retried later or get the pause. */
  #onHeld(held: HeldConnection): null {
    if ('retryInMs' in held && !this.options.single) {
      const pending = this.#pending
      this.#pending = new Set()
      for (const target of pending) this.#sink.later(target, held.retryInMs)
    } else if ('refusal' in held) this.#resolveUnprobed(held.refusal)
    else {
      const wait = 'waitMs' in held ? held : { waitMs: held.retryInMs, paused: false }
      this.#resolveUnprobed(toHeldOutcome(wait, this.options.drain.aborted))
    }
    return null
  }

  #openFailed(
    { answer, cutShort, ...where }: OpenFailure,
    otherSessions: number,
  ): RecipientOutcome | null {
    const { hosts, reachability, deps } = this.egress
    const { signal, single } = this.options
    const demand = this.#tlsDemand
    if (demand !== null && (answer.stage === 'starttls' || answer.stage === 'ehlo')) {
      // TLS cannot be established, so the reply sent in clear text is the answer.
      this.resolveRemaining(demand.answer, demand.facts)
      return demand.answer
    }
    if (answer.kind === 'no-response') {
      // A drain says nothing about the host, and the targets stay unprobed.
      if (this.#stop.aborted && !this.#signal.aborted) return answer
      const optional = answer.why === 'tls' && where.host !== null && hosts.tlsFailed(where.host)
      if (optional && !signal.aborted) return WITHOUT_TLS
      // A host without an address, or with a forbidden one, stays so on an immediate retry.
      const final = answer.why === 'no-address' || answer.why === 'not-public'
      // The outbound port is blocked, so the MX group is not marked as failed; `run` resolves the
      // rest.
      if (!final && reachability.blockedOutcome !== null) return answer
      if (final || single || signal.aborted) {
        if (!cutShort) this.#markFailed(answer, where.isLost)
        this.resolveRemaining(answer, where)
      }
      return answer
    }
    writeLog(deps.log, ENGINE_LOG.connectionRejected, {
      host: where.host,
      kind: answer.kind,
      why: answer.why,
      code: answer.reply.code,
    })
    if (answer.kind === 'blocked') this.rateController.refused(answer)
    if (answer.kind === 'deferred')
      this.rateController.throttled(answer.retryAfterMs, otherSessions, answer)
    this.resolveRemaining(answer, where)
    return answer
  }

  /** Counts a failure of the hosts, unless its cause may be a limit or suspension of this process. */
  #markFailed(answer: RecipientOutcome, isLost = false) {
    const { deps, hosts } = this.egress
    if (answer.why === 'own-limit' || wasSuspended(deps.clock, this.startedAt)) return
    const isCut = this.#isAwaited || this.#signal.aborted
    const isBrief = isCut && answer.why === 'timeout' && answer.stage !== 'connect'
    hosts.failed(this.#plan.key, { answer, isLost, isBrief })
  }

  // The members below are the `MxGroupState` that `SmtpProbe` uses.

  get pending(): ReadonlySet<Q> {
    return this.#pending
  }

  get isInDoubt(): boolean {
    return this.#isInDoubt
  }

  get canReturn(): boolean {
    return !this.options.single && this.#sink.returned !== undefined
  }

  catchAllOf(target: Q): boolean | null {
    return hostsAt(target, this.operator).catchAll
  }

  catchAllKey(target: Q, host: string | null): string {
    return catchAllKey(target, this.operator, host)
  }

  serverKeys(host: string, ip: string): ServerKeys {
    const keys = serverKeys(this.#plan.route, host)
    // The servers of a known operator may know each customer by host name, on one address for all.
    const isOneServer = this.egress.deps.destinationLimits?.includes(this.operator) === true
    return isOneServer ? [ip, ...keys] : keys
  }

  turnToEquals(host: string, answer: RecipientOutcome): boolean {
    const { key, route } = this.#plan
    const { hosts } = this.egress
    if (!isNotHosted(answer) || hosts.isNotServing(key, host)) return false
    if (equalHosts(route, host).length < 2) return false
    hosts.markNotServing(key, host)
    return true
  }

  get transactionMax(): number {
    return this.#transactionMax
  }

  /** Records that the host accepts at most `max` recipients per transaction. */
  reduceBatchSize(max: number) {
    this.#transactionMax = Math.max(1, Math.min(this.#transactionMax, max))
  }

  noteTransactionMax(host: string, taken: number) {
    this.egress.limits.noteRecipientsMax(host, taken)
    this.reduceBatchSize(taken)
  }

  /**
   * Records a block at RCPT. It counts for the domain first, and for the operator after several.
   */
  blockedAtRcpt({ address }: Q, answer: RecipientOutcome) {
    const domain = address.domain.ascii
    const isUnclear = getUncertainty(answer, wireAddress(address)) !== null
    const isBlocking = this.egress.domains.blocked(domain, answer, isUnclear)
    // A block that names our IP, HELO or sender counts at once; a policy may concern one mailbox
    // only.
    const isAboutUs = WHY_ABOUT_US.has(answer.why) || (isBlocking && answer.why === 'policy')
    if (isAboutUs) this.rateController.refusedByDomain(domain, answer)
  }

  notBlocked({ address }: Q) {
    this.egress.domains.notBlocked(address.domain.ascii)
  }

  /** Whether the domain of these targets, or its operator, blocks this egress. */
  isRefused([target]: readonly Q[]): boolean {
    const { domains } = this.egress
    return (
      this.rateController.isRefused || domains.find(target?.address.domain.ascii ?? '') !== null
    )
  }

  /**
   * Resolves the remaining targets of every domain that blocks this egress, without probing them.
   */
  resolveBlocked() {
    if (this.egress.domains.isEmpty) return
    const byDomain = groupBy(this.#pending, ({ address }) => address.domain.ascii)
    for (const [domain, targets] of byDomain) {
      const refusal = this.egress.domains.find(domain)
      if (refusal !== null) this.#resolveUnprobed(refusal.answer, targets)
    }
  }

  returnTargets(targets: readonly Q[]) {
    for (const target of targets) this.#pending.delete(target)
    this.#sink.returned?.(targets)
  }

  setTlsDemand(answer: RecipientOutcome, facts: ConnectionInfo) {
    this.#tlsDemand = { answer, facts }
  }

  /**
   * After a missing or surplus reply, later connections to this host send one command at a time.
   */
  stopPipelining(host: string) {
    this.#isLockStep = true
    this.egress.hosts.markOutOfStep(host)
  }

  /** Later connections send one command at a time, which shows where the server goes silent. */
  onSilence(target: Q) {
    if (this.options.single) return
    this.#isLockStep = true
    this.#silentAt = target
  }

  resolve(
    target: Q,
    answer: RecipientOutcome,
    facts: ConnectionInfo,
    catchAllInStep: Promise<boolean> | null = null,
  ) {
    this.#pending.delete(target)
    const withheld = { target, answer, facts, catchAllInStep }
    if (this.#withheld === null) this.#notify(withheld)
    else this.#withheld.add(withheld)
  }

  #notify({ target, answer, facts }: WithheldOutcome<Q>) {
    if (answer.kind !== 'no-response' && facts.asked !== false)
      this.egress.hosts.markReachable(this.#plan.key)
    const probed: ProbeResult = {
      answer,
      catchAll: facts.catchAll === undefined ? this.catchAllOf(target) : facts.catchAll,
      egress: facts.egress ?? this.egress.deps.egress.name,
      host: facts.host ?? null,
      ip: facts.ip ?? null,
      tls: facts.tls ?? false,
      connectMs: facts.connectMs ?? null,
      asked: facts.asked ?? true,
      isLost: facts.isLost,
      dialogue: this.#dialogue.lines,
    }
    this.#sink.probed(target, orAccepted(target, probed))
  }

  resolveRemaining(answer: RecipientOutcome, facts: ConnectionInfo) {
    if (answer.kind !== 'no-response' && answer.stage !== 'rcpt')
      this.egress.learned.onRefusedBeforeRcpt(this.operator, answer.reply)
    for (const target of this.#pending) this.resolve(target, answer, facts)
  }

  #resolveUnprobed(
    answer: RecipientOutcome,
    targets: Iterable<Q> = this.#pending,
    facts: ConnectionInfo = { asked: false },
  ) {
    const { deps } = this.egress
    const { listener, signal } = this.options
    if (targets === this.#pending && this.#pending.size === 0) return
    const noHost = { host: null, ip: null, port: deps.smtpPort, dialled: false }
    if (!signal.aborted) listener?.onCall({ ...noHost, answer })
    for (const target of targets) this.resolve(target, answer, facts)
  }
}

const isBeforeMail = (stage: Stage) => stage === 'greeting' || stage === 'ehlo'

/** Keeps an earlier acceptance of the recipient, whatever the result of the catch-all test. */
function orAccepted({ accepted }: ProbeTarget, probed: ProbeResult): ProbeResult {
  if (accepted === null) return probed
  const { at: _, egress, ...facts } = accepted
  return { ...probed, ...facts, egress: egress ?? probed.egress }
}

/** Whether a second look may decide: an untested acceptance, or a refusal that no rule knows. */
function isUndecided({ target, answer, facts }: WithheldOutcome<ProbeTarget>): boolean {
  if (answer.kind === 'accepted') return answer.why === 'recipient' && facts.catchAll === null
  return getUncertainty(answer, wireAddress(target.address)) !== null
}

/** Blocks that name our IP address, our HELO or PTR name, or our sender address. */
const WHY_ABOUT_US: ReadonlySet<RecipientOutcome['why']> = new Set(['blocklist', 'rdns', 'sender'])
