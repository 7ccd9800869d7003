import { HOUR } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { MxOperator } from '../dns/operators.ts'
import { RateController } from '../rate-control/controller.ts'
import { type RateLimits } from '../rate-control/limit-table.ts'
import type { SharedRateState } from '../rate-control/shared-state.ts'
import { CatchAllCache } from './catch-all.ts'
import { DomainBlocks } from './domain-blocks.ts'
import type { ProbeDeps } from './egress.ts'
import { HostHealth } from './host-health.ts'
import { MxGroupProbe } from './mx-group-probe.ts'
import { type ProbeOptions } from './mx-group-options.ts'
import { type ProbeResult } from './probe-outcome.ts'
import { catchAllKey, groupByMx, type ProbeTarget } from './mx-groups.ts'
import { OutboundReachability } from './outbound-reachability.ts'

/** Operators whose pace is remembered; one that was not asked for so long starts anew. Longer than any pause. */
const OPERATORS_MAX = 20_000
const CONTROLLER_TTL_MS = 2 * HOUR

/** Asks mail servers about recipients, politely, and remembers how each operator wants to be asked. */
export class EgressProber {
  readonly #deps: ProbeDeps
  readonly #rowOf: (operator: string) => RateLimits
  readonly #rateControllers: TtlMap<RateController>
  readonly #share: SharedRateState | null
  readonly #hosts: HostHealth
  readonly #domains: DomainBlocks
  readonly #reachability: OutboundReachability
  readonly catchAll: CatchAllCache
  /** Connections whose last answer is there and which are being closed. */
  readonly #pendingQuits = new Set<Promise<void>>()

  constructor(
    deps: ProbeDeps,
    rowOf: (operator: string) => RateLimits,
    /** Shared by several probers: what a domain takes does not hang on who asks. */
    catchAll = new CatchAllCache(deps.clock),
    /** Where other processes go by the same paces. */
    share: SharedRateState | null = null,
  ) {
    this.#deps = deps
    this.#rowOf = rowOf
    this.#rateControllers = new TtlMap({ sizeMax: OPERATORS_MAX, clock: deps.clock })
    this.#hosts = new HostHealth(deps.clock)
    const { clock, egress } = deps
    this.#domains = new DomainBlocks({ clock, egress: egress.name, row: rowOf(''), share })
    this.#reachability = new OutboundReachability(deps, () => this.#hosts.forgive())
    this.catchAll = catchAll
    this.#share = share
  }

  get egressName(): string {
    return this.#deps.egress.name
  }

  /** Where the pace of an operator starts. */
  row(operator: string): RateLimits {
    return this.#rowOf(operator)
  }

  /** The pace at which an operator is asked. */
  rateController(operator: string): RateController {
    const rateController = this.#rateControllers.get(operator) ?? this.#createController(operator)
    this.#rateControllers.set(operator, rateController, CONTROLLER_TTL_MS)
    return rateController
  }

  /** The same where it was asked lately; else null. */
  knownController(operator: string): RateController | null {
    return this.#rateControllers.get(operator) ?? null
  }

  #createController(operator: string): RateController {
    const row = this.#rowOf(operator)
    const { clock, egress } = this.#deps
    return new RateController(row, clock, this.#share?.open({ operator, egress: egress.name }, row))
  }

  /** False while the operator refuses us or the way out is closed: who is asked about then is told so at once. */
  mayAsk(operator: string): boolean {
    if (this.#reachability.blockedOutcome !== null) return false
    const key = { operator, egress: this.egressName }
    if (this.#share !== null) return this.#share.refusal(key) === null
    return !(this.#rateControllers.get(operator)?.isRefused ?? false)
  }

  /** How much longer the operator, or the domain there, is taken to refuse us; 0: it does not. */
  refusedForMs(operator: string, domain: string): number {
    const rateController = this.#rateControllers.get(operator)
    return Math.max(rateController?.refusedForMs ?? 0, this.#domains.find(domain)?.leftMs ?? 0)
  }

  /** Since when no mail server can be reached, by the wall clock; null: nobody says so. */
  get closedSince(): number | null {
    return this.#reachability.closedSince
  }

  /** Those of the operators that were asked lately, the last of them first. */
  rateControllers(): Iterable<[operator: string, RateController]> {
    return this.#rateControllers.entries()
  }

  /** For who can wait: how long, until it is known whether mail servers can be reached at all; null where it is. */
  get uncertainForMs(): number | null {
    return this.#reachability.uncertainForMs
  }

  /**
   * Asks one operator about recipients, set of exchangers after set of exchangers, with one connection at
   * a time. Resolves when every question has its answer; the last connection is then being closed.
   */
  async probe<Q extends ProbeTarget>(
    operator: MxOperator,
    questions: readonly Q[],
    options: ProbeOptions<Q>,
  ): Promise<void> {
    const rateController = this.rateController(operator.name)
    if (rateController.isRefused) rateController.skipped(questions.length)
    const unsure = questions.filter(({ catchAll }) => catchAll === null)
    const learned = this.catchAll.load(unsure.map(catchAllKey))
    if (questions.some(({ accepted }) => accepted !== null)) await learned
    const open = questions.filter(question => !this.#settleTested(question, options))
    let closed = Promise.resolve()
    for (const plan of groupByMx(open)) {
      await closed
      const group = new MxGroupProbe(plan, {
        ...options,
        onProbed: (question, probed) => options.onProbed(question, orAccepted(question, probed)),
        deps: this.#deps,
        operator: operator.name,
        rateController,
        catchAll: this.catchAll,
        learned,
        hosts: this.#hosts,
        domains: this.#domains,
        reachability: this.#reachability,
        onDrain: drain => {
          closed = drain
          this.#follow(drain)
        },
      })
      await group.run()
    }
  }

  /** A recipient that was accepted before needs no connection when its domain was tested meanwhile. */
  #settleTested<Q extends ProbeTarget>(question: Q, { onProbed }: ProbeOptions<Q>): boolean {
    if (question.accepted === null) return false
    const catchAll = this.catchAll.get(catchAllKey(question))
    if (catchAll === null) return false
    const { at: _, ...accepted } = question.accepted
    const egress = accepted.egress ?? this.egressName
    onProbed(question, { ...accepted, egress, catchAll, asked: false, dialogue: null })
    return true
  }

  /** Resolves when every connection is closed that is being closed now. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#pendingQuits)
  }

  /** The same, when nobody will ask any more. */
  close(): Promise<void> {
    this.#reachability.cancelProbe()
    return this.idle()
  }

  #follow(closed: Promise<void>) {
    this.#pendingQuits.add(closed)
    const over = () => void this.#pendingQuits.delete(closed)
    closed.then(over, over)
  }
}

/** A recipient that was accepted before stays accepted, whatever became of the catch-all test. */
function orAccepted({ accepted }: ProbeTarget, probed: ProbeResult): ProbeResult {
  if (accepted === null) return probed
  const { at: _, egress, ...facts } = accepted
  return { ...probed, ...facts, egress: egress ?? probed.egress }
}
