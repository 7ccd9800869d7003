import { HOUR } from '../base/clock.ts'
import { TtlMap } from '../base/ttl-map.ts'
import type { Operator } from '../dns/operator.ts'
import { CatchAllMemory } from './catch-all.ts'
import type { ProbeWorld } from './egress/egress.ts'
import { WayOut } from './egress/way-out.ts'
import { DomainRefusals } from './lane/domain-refusals.ts'
import { HostMemory } from './lane/host-memory.ts'
import { Lane, type Probed, type ProbeOptions } from './lane/lane.ts'
import { Pace, type PaceRow } from './pace.ts'
import type { PaceShare } from './pace-share.ts'
import { catchAllKey, planLanes, type Question } from './plan.ts'

/** Operators whose pace is remembered; one that was not asked for so long starts anew. Longer than any pause. */
const OPERATORS_MAX = 20_000
const PACE_TTL_MS = 2 * HOUR

/** Asks mail servers about recipients, politely, and remembers how each operator wants to be asked. */
export class Prober {
  readonly #world: ProbeWorld
  readonly #rowOf: (operator: string) => PaceRow
  readonly #paces: TtlMap<Pace>
  readonly #share: PaceShare | null
  readonly #hosts: HostMemory
  readonly #domains: DomainRefusals
  readonly #wayOut: WayOut
  readonly catchAll: CatchAllMemory
  /** Connections whose last answer is there and which are being closed. */
  readonly #farewells = new Set<Promise<void>>()

  constructor(
    world: ProbeWorld,
    rowOf: (operator: string) => PaceRow,
    /** Shared by several probers: what a domain takes does not hang on who asks. */
    catchAll = new CatchAllMemory(world.clock),
    /** Where other processes go by the same paces. */
    share: PaceShare | null = null,
  ) {
    this.#world = world
    this.#rowOf = rowOf
    this.#paces = new TtlMap({ sizeMax: OPERATORS_MAX, clock: world.clock })
    this.#hosts = new HostMemory(world.clock)
    const { clock, egress } = world
    this.#domains = new DomainRefusals({ clock, egress: egress.name, row: rowOf(''), share })
    this.#wayOut = new WayOut(world, () => this.#hosts.forgive())
    this.catchAll = catchAll
    this.#share = share
  }

  get egressName(): string {
    return this.#world.egress.name
  }

  /** Where the pace of an operator starts. */
  row(operator: string): PaceRow {
    return this.#rowOf(operator)
  }

  /** The pace at which an operator is asked. */
  pace(operator: string): Pace {
    const pace = this.#paces.get(operator) ?? this.#newPace(operator)
    this.#paces.set(operator, pace, PACE_TTL_MS)
    return pace
  }

  /** The same where it was asked lately; else null. */
  knownPace(operator: string): Pace | null {
    return this.#paces.get(operator) ?? null
  }

  #newPace(operator: string): Pace {
    const row = this.#rowOf(operator)
    const { clock, egress } = this.#world
    return new Pace(row, clock, this.#share?.open({ operator, egress: egress.name }, row))
  }

  /** False while the operator refuses us or the way out is closed: who is asked about then is told so at once. */
  mayAsk(operator: string): boolean {
    if (this.#wayOut.closedAnswer !== null) return false
    const key = { operator, egress: this.egressName }
    if (this.#share !== null) return this.#share.refusal(key) === null
    return !(this.#paces.get(operator)?.isRefused ?? false)
  }

  /** How much longer the operator, or the domain there, is taken to refuse us; 0: it does not. */
  refusedForMs(operator: string, domain: string): number {
    const pace = this.#paces.get(operator)
    return Math.max(pace?.refusedForMs ?? 0, this.#domains.find(domain)?.leftMs ?? 0)
  }

  /** Since when no mail server can be reached, by the wall clock; null: nobody says so. */
  get closedSince(): number | null {
    return this.#wayOut.closedSince
  }

  /** Those of the operators that were asked lately, the last of them first. */
  paces(): Iterable<[operator: string, Pace]> {
    return this.#paces.entries()
  }

  /** For who can wait: how long, until it is known whether mail servers can be reached at all; null where it is. */
  get doubtMs(): number | null {
    return this.#wayOut.doubtMs
  }

  /**
   * Asks one operator about recipients, set of exchangers after set of exchangers, with one connection at
   * a time. Resolves when every question has its answer; the last connection is then being closed.
   */
  async probe<Q extends Question>(
    operator: Operator,
    questions: readonly Q[],
    options: ProbeOptions<Q>,
  ): Promise<void> {
    const pace = this.pace(operator.name)
    if (pace.isRefused) pace.turnedAway(questions.length)
    const unsure = questions.filter(({ catchAll }) => catchAll === null)
    const learned = this.catchAll.learn(unsure.map(catchAllKey))
    if (questions.some(({ accepted }) => accepted !== null)) await learned
    const open = questions.filter(question => !this.#settleTested(question, options))
    let closed = Promise.resolve()
    for (const plan of planLanes(open)) {
      await closed
      const lane = new Lane(plan, {
        ...options,
        onProbed: (question, probed) => options.onProbed(question, orAccepted(question, probed)),
        world: this.#world,
        operator: operator.name,
        pace,
        catchAll: this.catchAll,
        learned,
        hosts: this.#hosts,
        domains: this.#domains,
        wayOut: this.#wayOut,
        onFarewell: farewell => {
          closed = farewell
          this.#follow(farewell)
        },
      })
      await lane.walk()
    }
  }

  /** A recipient that was accepted before needs no connection when its domain was tested meanwhile. */
  #settleTested<Q extends Question>(question: Q, { onProbed }: ProbeOptions<Q>): boolean {
    if (question.accepted === null) return false
    const catchAll = this.catchAll.recall(catchAllKey(question))
    if (catchAll === null) return false
    const { at: _, ...accepted } = question.accepted
    const egress = accepted.egress ?? this.egressName
    onProbed(question, { ...accepted, egress, catchAll, asked: false, dialogue: null })
    return true
  }

  /** Resolves when every connection is closed that is being closed now. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#farewells)
  }

  /** The same, when nobody will ask any more. */
  close(): Promise<void> {
    this.#wayOut.rest()
    return this.idle()
  }

  #follow(closed: Promise<void>) {
    this.#farewells.add(closed)
    const over = () => void this.#farewells.delete(closed)
    closed.then(over, over)
  }
}

/** A recipient that was accepted before stays accepted, whatever became of the catch-all test. */
function orAccepted({ accepted }: Question, probed: Probed): Probed {
  if (accepted === null) return probed
  const { at: _, egress, ...facts } = accepted
  return { ...probed, ...facts, egress: egress ?? probed.egress }
}
