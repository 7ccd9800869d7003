import { HOUR } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { LearnedReplies } from '../learned-replies/learned-replies.ts'
import { RateController } from '../rate-control/controller.ts'
import type { RateLimits } from '../rate-control/limit-table.ts'
import type { SharedRateState } from '../rate-control/shared-state.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import { CatchAllCache } from './catch-all.ts'
import { DomainBlocks } from './domain-blocks.ts'
import type { ProbeDeps } from './egress.ts'
import { HostHealth } from './host-health.ts'
import { MxGroupProbe, type MxGroupProbeDeps } from './mx-group-probe.ts'
import type { EgressState } from './mx-group-state.ts'
import { catchAllKey, groupByMx, type ProbeTarget } from './mx-groups.ts'
import { OutboundReachability } from './outbound-reachability.ts'
import type { ProbeOptions, ProbeSink } from './probe-options.ts'
import { type ProbeResult, toHeldOutcome } from './probe-outcome.ts'
import { ServedAddresses } from './served-addresses.ts'
import { ServerLimits } from './server-limits.ts'
import { Witnesses } from './witnesses.ts'

/** Operators with a rate controller in memory; about 800 bytes each, 16 MB. */
const OPERATORS_MAX = 20_000
/** An operator not probed for this long starts with the default limits. Longer than any pause. */
const CONTROLLER_TTL_MS = 2 * HOUR

/** Probes recipients through one egress, within rate limits that adapt to each operator. */
export class EgressProber implements EgressState {
  readonly deps: ProbeDeps
  readonly #limitsFor: (operator: string) => RateLimits
  readonly #rateControllers: TtlMap<RateController>
  readonly #share: SharedRateState | null
  readonly hosts: HostHealth
  readonly limits: ServerLimits
  readonly witnesses: Witnesses
  readonly domains: DomainBlocks
  readonly reachability: OutboundReachability
  readonly catchAll: CatchAllCache
  readonly learned: LearnedReplies
  /** Connections that have their last answer and are closing. */
  readonly #pendingQuits = new Set<Promise<void>>()

  constructor(
    deps: ProbeDeps,
    limitsFor: (operator: string) => RateLimits,
    /** Shared by several probers: whether a domain is a catch-all does not depend on the egress. */
    catchAll = new CatchAllCache(deps.clock),
    /** The rate state shared with other processes; null if there are none. */
    share: SharedRateState | null = null,
    /** Shared by several probers, for the same reason. */
    learned = new LearnedReplies({ clock: deps.clock, log: deps.log, store: null }),
    /** Shared by several probers: a host that served one of them may be back soon. */
    served = new ServedAddresses(deps.clock),
  ) {
    this.deps = deps
    this.#limitsFor = limitsFor
    this.#rateControllers = new TtlMap({ sizeMax: OPERATORS_MAX, clock: deps.clock })
    this.hosts = new HostHealth(deps.clock, served)
    this.limits = new ServerLimits(deps.clock)
    const { clock, log, egress } = deps
    this.witnesses = new Witnesses({ clock, log, store: deps.witnesses ?? null })
    this.domains = new DomainBlocks({ clock, egress: egress.name, limits: limitsFor(''), share })
    this.reachability = new OutboundReachability(deps, () => this.hosts.clearFailures())
    this.catchAll = catchAll
    this.learned = learned
    this.#share = share
  }

  get egressName(): string {
    return this.deps.egress.name
  }

  /** Returns the initial rate limits of an operator. */
  limitsFor(operator: string): RateLimits {
    return this.#limitsFor(operator)
  }

  /** Returns the rate controller of an operator, and creates it if needed. */
  rateController(operator: string): RateController {
    const create = () => this.#createController(operator)
    return this.#rateControllers.getOrCreate(operator, create, CONTROLLER_TTL_MS)
  }

  /** Returns the rate controller of an operator that was probed recently, else null. */
  knownController(operator: string): RateController | null {
    return this.#rateControllers.get(operator) ?? null
  }

  #createController(operator: string): RateController {
    const limits = this.#limitsFor(operator)
    const { clock, egress } = this.deps
    return new RateController(
      limits,
      clock,
      this.#share?.open({ operator, egress: egress.name }, limits),
    )
  }

  /** False while the operator blocks this egress or the outbound port is blocked. */
  mayAsk(operator: string): boolean {
    if (this.reachability.blockedOutcome !== null) return false
    const key = { operator, egress: this.egressName }
    if (this.#share !== null) return this.#share.refusal(key) === null
    return !(this.#rateControllers.get(operator)?.isRefused ?? false)
  }

  /** How much longer the operator or the domain counts as blocking, in ms; 0 if it does not. */
  refusedForMs(operator: string, domain: string): number {
    const rateController = this.#rateControllers.get(operator)
    return Math.max(rateController?.refusedForMs ?? 0, this.domains.find(domain)?.leftMs ?? 0)
  }

  /** How long the operator or the domain has refused every recipient, in ms. */
  unservedForMs(operator: string, domain: string): number {
    const rateController = this.#rateControllers.get(operator)
    return Math.max(rateController?.unservedForMs ?? 0, this.domains.blockingForMs(domain))
  }

  /** How long ago the operator last served a recipient, in ms; infinite if it has not. */
  servedAgoMs(operator: string): number {
    return this.#rateControllers.get(operator)?.servedAgoMs ?? Number.POSITIVE_INFINITY
  }

  /**
   * Returns the outcome of recipients of an operator while it blocks or pauses this egress, or while
   * their domain does; null if they may be probed.
   */
  currentStop(operator: string, domain: string): RecipientOutcome | null {
    const egress = this.egressName
    const block = this.domains.find(domain) ?? this.#share?.refusal({ operator, egress }) ?? null
    if (block !== null) return block.answer
    const status = this.#rateControllers.get(operator)?.status(operator)
    const { refusal = null, pause = null } = status ?? {}
    const now = this.deps.clock.now()
    if (refusal !== null && refusal.until > now) return refusal.answer
    return pause === null ? null : toHeldOutcome({ waitMs: pause.until - now, paused: true }, false)
  }

  /**
   * Since when no mail server can be reached, epoch ms; null if the port does not count as blocked.
   */
  get closedSince(): number | null {
    return this.reachability.closedSince
  }

  /** Whether something else answers on the port instead of the mail servers. */
  get isIntercepted(): boolean {
    return this.reachability.interceptedOutcome !== null
  }

  /** Whether a mail server was reached since the start. */
  get hasConnected(): boolean {
    return this.reachability.hasConnected
  }

  /** The rate controllers of recently probed operators, the most recent first. */
  rateControllers(): Iterable<[operator: string, RateController]> {
    return this.#rateControllers.entries()
  }

  /** How long to wait while the reference MX hosts are being probed; null otherwise. */
  get probingForMs(): number | null {
    return this.reachability.probingForMs
  }

  /**
   * How long to wait until it is known whether mail servers are reachable, 0 if the next dial tells;
   * null if it is known.
   */
  get uncertainForMs(): number | null {
    return this.reachability.uncertainForMs
  }

  /**
   * Probes recipients at the hosts that one operator runs for them, one MX group after another, with
   * one connection at a time. Resolves when the sink has each target; the last connection may still
   * be closing.
   */
  async probe<Q extends ProbeTarget>(
    operator: string,
    targets: readonly Q[],
    sink: ProbeSink<Q, ProbeResult>,
    options: ProbeOptions,
  ): Promise<void> {
    const rateController = this.rateController(operator)
    if (rateController.isRefused) rateController.skipped(targets.length)
    const loaded = this.catchAll.loadFor(targets, operator)
    if (loaded !== null && targets.some(({ accepted }) => accepted !== null)) await loaded
    const untested = targets.filter(
      target => target.accepted === null || !this.#resolveTested(target, operator, sink),
    )
    let closed: Promise<void> | null = null
    const deps: MxGroupProbeDeps = {
      egress: this,
      operator,
      rateController,
      loaded,
      onDrain: drain => {
        closed = drain
        this.#track(drain)
      },
    }
    for (const plan of groupByMx(untested, operator)) {
      if (closed !== null) await closed
      await new MxGroupProbe(plan, deps, sink, options).run()
    }
  }

  /**
   * Resolves a recipient that was accepted earlier, if its domain has been tested since or cannot be
   * tested.
   */
  #resolveTested<Q extends ProbeTarget>(
    target: Q,
    operator: string,
    sink: ProbeSink<Q, ProbeResult>,
  ): boolean {
    if (target.accepted === null) return false
    const { at: _, ...accepted } = target.accepted
    const catchAll = this.catchAll.get(catchAllKey(target, operator, accepted.host))
    if (catchAll === null && !this.limits.ignoresTests(accepted.host ?? '')) return false
    const egress = accepted.egress ?? this.egressName
    sink.probed(target, { ...accepted, egress, catchAll, asked: false, dialogue: null })
    return true
  }

  /** Resolves when every connection that is closing now is closed. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#pendingQuits)
  }

  /** Aborts a running port probe and waits until all connections are closed. No probe may follow. */
  close(): Promise<void> {
    this.reachability.stop()
    return this.idle()
  }

  #track(closed: Promise<void>) {
    this.#pendingQuits.add(closed)
    const remove = () => void this.#pendingQuits.delete(closed)
    closed.then(remove, remove)
  }
}
