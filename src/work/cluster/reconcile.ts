import { breathe, type Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { type Loop, startLoop } from '../../base/loop.ts'
import type { Random } from '../../base/random.ts'
import type { Fleet } from '../../probe/egress/fleet.ts'
import type { Queue } from '../../queue/queue.ts'
import {
  type Bound,
  isOurRound,
  overdueBound,
  overdueOperators,
  unroutedJobs,
} from '../../store/cluster/missing.ts'
import type { Database } from '../../store/database.ts'
import { freeItems, type Waiting } from '../../store/job/claims.ts'
import { probeKind, type Slot, slotKey } from '../probe/entries.ts'
import { type ClusterTimings, DEFAULT_CLUSTER_TIMINGS } from './cluster-timings.ts'
import { EgressAbsence } from './egress-absence.ts'

export type ReconcileParts = {
  readonly database: Database
  readonly queue: Queue
  readonly fleet: Fleet
  /** Names of the egresses that some living member asks by. */
  readonly egresses: () => readonly string[]
  readonly random: Random
  readonly log: Log
  readonly timings?: ClusterTimings
}

/** Pairs of operator and job that are read together, and in one round; the next one goes on behind them. */
const PAGE_MAX = 1_000
const PAGES_MAX = 10

/**
 * Puts into the queue what is missing there: the store tells what there is to do, and an entry may be lost with the
 * process that was about to put it.
 */
export function startReconcile(parts: ReconcileParts): Loop {
  const { database, random, log, timings = DEFAULT_CLUSTER_TIMINGS } = parts
  const { reconcileMinMs, reconcileSpreadMs } = timings
  const round = new Round(parts)
  return startLoop({
    ...{ name: 'reconciliation', clock: database.clock, log },
    everyMs: () => reconcileMinMs + random.below(reconcileSpreadMs),
    run: signal => round.run(signal),
  })
}

class Round {
  readonly #parts: ReconcileParts
  readonly #clock: Clock
  readonly #timings: ClusterTimings
  readonly #absence: EgressAbsence
  /** Where the last round ended. */
  #after: Waiting = BEGINNING

  constructor(parts: ReconcileParts) {
    this.#parts = parts
    this.#clock = parts.database.clock
    this.#timings = parts.timings ?? DEFAULT_CLUSTER_TIMINGS
    this.#absence = new EgressAbsence(this.#clock)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { database, queue, egresses } = this.#parts
    this.#absence.note(egresses())
    if (!(await isOurRound(database, this.#timings.reconcileMinMs))) return
    await queue.putAll('route', await unroutedJobs(database))
    await this.#putOperators(signal)
    await this.#putBound()
  }

  async #putOperators(signal: AbortSignal): Promise<void> {
    const { database, fleet } = this.#parts
    const dueBefore = this.#dueBefore
    for (let pages = 0; pages < PAGES_MAX && !signal.aborted; pages++) {
      const page = { after: this.#after, max: PAGE_MAX, dueBefore }
      const { operators, next } = await overdueOperators(database, page)
      await this.#put(operators.map(operator => ({ operator, egress: fleet.firstFor(operator) })))
      this.#after = next ?? BEGINNING
      if (next === null) return
      await breathe()
    }
  }

  async #putBound(): Promise<void> {
    const { database, fleet } = this.#parts
    const bound = await overdueBound(database, this.#dueBefore)
    for (const one of bound.filter(each => this.#isFree(each))) {
      await freeItems(database, one)
      await this.#put([{ operator: one.operator, egress: fleet.firstFor(one.operator) }])
    }
    await this.#put(bound.filter(each => this.#isAsked(each)))
  }

  /** Nobody asks by its egress any more, or not that operator. */
  #isFree({ operator, egress }: Bound): boolean {
    if (this.#absence.isPresent(egress))
      return !this.#parts.fleet.inOrder(operator).includes(egress)
    return this.#absence.ofMs(egress) >= this.#timings.absentMs
  }

  #isAsked(bound: Bound): boolean {
    return this.#absence.isPresent(bound.egress) && !this.#isFree(bound)
  }

  get #dueBefore(): number {
    return this.#clock.now() - this.#timings.overdueMs
  }

  async #put(slots: readonly Slot[]): Promise<void> {
    for (const [egress, its] of Map.groupBy(slots, slot => slot.egress)) {
      const keys = new Set(its.map(({ operator }) => slotKey(operator, 0)))
      await this.#parts.queue.putAll(probeKind(egress), [...keys])
    }
  }
}

const BEGINNING: Waiting = { operator: '', jobId: '' }
