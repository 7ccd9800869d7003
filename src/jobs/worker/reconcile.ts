import { EgressAbsence } from '../../cluster/egress-absence.ts'
import { type ClusterTimings, DEFAULT_CLUSTER_TIMINGS } from '../../cluster/membership.ts'
import type { Database } from '../../db/database.ts'
import type { EgressPool } from '../../engine/probe/egress-pool.ts'
import { type Clock, yieldToEventLoop } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import type { Random } from '../../platform/random.ts'
import type { Queue } from '../../queue/queue.ts'
import { unpinItems, type Waiting } from '../item-claims.ts'
import {
  claimReconciliation,
  jobsWithoutTask,
  operatorsWithoutTask,
  overduePinnedItems,
  type PinnedItems,
} from '../missing-tasks.ts'
import { probeKind, type Slot, slotKey } from '../probing/probe-tasks.ts'

export type ReconcileDeps = {
  readonly database: Database
  readonly queue: Queue
  readonly egressPool: EgressPool
  /** Names of the egresses that some living member asks by. */
  readonly egresses: () => readonly string[]
  readonly random: Random
  readonly log: Log
  readonly timings?: ClusterTimings
}

/**
 * Pairs of operator and job that are read together, and in one round; the next one goes on behind
 * them.
 */
const PAGE_MAX = 1_000
const PAGES_MAX = 10

/**
 * Puts into the queue what is missing there: the store tells what there is to do, and an entry may
 * be lost with the process that was about to put it.
 */
export function startReconcile(deps: ReconcileDeps): Loop {
  const { database, random, log, timings = DEFAULT_CLUSTER_TIMINGS } = deps
  const { reconcileMinMs, reconcileSpreadMs } = timings
  const round = new Round(deps)
  return startLoop({
    ...{ name: 'reconciliation', clock: database.clock, log },
    everyMs: () => reconcileMinMs + random.below(reconcileSpreadMs),
    run: signal => round.run(signal),
  })
}

class Round {
  readonly #deps: ReconcileDeps
  readonly #clock: Clock
  readonly #timings: ClusterTimings
  readonly #absence: EgressAbsence
  /** Where the last round ended. */
  #after: Waiting = BEGINNING

  constructor(deps: ReconcileDeps) {
    this.#deps = deps
    this.#clock = deps.database.clock
    this.#timings = deps.timings ?? DEFAULT_CLUSTER_TIMINGS
    this.#absence = new EgressAbsence(this.#clock)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { database, queue, egresses } = this.#deps
    this.#absence.note(egresses())
    if (!(await claimReconciliation(database, this.#timings.reconcileMinMs))) return
    await queue.putAll('route', await jobsWithoutTask(database))
    await this.#putOperators(signal)
    await this.#putBound()
  }

  async #putOperators(signal: AbortSignal): Promise<void> {
    const { database, egressPool } = this.#deps
    const dueBefore = this.#dueBefore
    for (let pages = 0; pages < PAGES_MAX && !signal.aborted; pages++) {
      const page = { after: this.#after, max: PAGE_MAX, dueBefore }
      const { operators, next } = await operatorsWithoutTask(database, page)
      await this.#put(
        operators.map(operator => ({ operator, egress: egressPool.primaryFor(operator) })),
      )
      this.#after = next ?? BEGINNING
      if (next === null) return
      await yieldToEventLoop()
    }
  }

  async #putBound(): Promise<void> {
    const { database, egressPool } = this.#deps
    const bound = await overduePinnedItems(database, this.#dueBefore)
    for (const one of bound.filter(each => this.#isFree(each))) {
      await unpinItems(database, one)
      await this.#put([{ operator: one.operator, egress: egressPool.primaryFor(one.operator) }])
    }
    await this.#put(bound.filter(each => this.#isAsked(each)))
  }

  /** Nobody asks by its egress any more, or not that operator. */
  #isFree({ operator, egress }: PinnedItems): boolean {
    if (this.#absence.isPresent(egress))
      return !this.#deps.egressPool.ranked(operator).includes(egress)
    return this.#absence.ofMs(egress) >= this.#timings.absentMs
  }

  #isAsked(bound: PinnedItems): boolean {
    return this.#absence.isPresent(bound.egress) && !this.#isFree(bound)
  }

  get #dueBefore(): number {
    return this.#clock.now() - this.#timings.overdueMs
  }

  async #put(slots: readonly Slot[]): Promise<void> {
    for (const [egress, its] of Map.groupBy(slots, slot => slot.egress)) {
      const keys = new Set(its.map(({ operator }) => slotKey(operator, 0)))
      await this.#deps.queue.putAll(probeKind(egress), [...keys])
    }
  }
}

const BEGINNING: Waiting = { operator: '', jobId: '' }
