import { EgressAbsence } from '../../cluster/egress-absence.ts'
import { type ClusterTimings, DEFAULT_CLUSTER_TIMINGS } from '../../cluster/membership.ts'
import type { Database } from '../../db/database.ts'
import type { EgressPool } from '../../engine/probe/egress-pool.ts'
import { type Clock, yieldToEventLoop } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import type { Random } from '../../platform/random.ts'
import type { Queue } from '../../queue/queue.ts'
import { unpinItems, type WaitingPair } from '../item-claims.ts'
import {
  claimReconciliation,
  jobsWithoutTask,
  operatorsWithoutTask,
  overduePinnedItems,
  type PinnedItems,
} from '../missing-tasks.ts'
import { probeKind, type Slot, slotKey } from '../probing/probe-tasks.ts'

type ReconcileDeps = {
  readonly database: Database
  readonly queue: Queue
  readonly egressPool: EgressPool
  /** Returns the names of the egresses of live members. */
  readonly egresses: () => readonly string[]
  readonly random: Random
  readonly log: Log
  readonly timings?: ClusterTimings
}

/** Pairs of operator and job per page, and pages per run; the next run continues after them. */
const PAGE_MAX = 1_000
const PAGES_MAX = 10

/**
 * Enqueues tasks that are missing: the store shows what there is to do, and a task is lost if the
 * process that was about to enqueue it crashes.
 */
export function startReconcile(deps: ReconcileDeps): Loop {
  const { database, random, log, timings = DEFAULT_CLUSTER_TIMINGS } = deps
  const { reconcileMinMs, reconcileSpreadMs } = timings
  const reconciler = new Reconciliation(deps)
  return startLoop({
    name: 'reconciliation',
    clock: database.clock,
    log,
    everyMs: () => reconcileMinMs + random.below(reconcileSpreadMs),
    run: signal => reconciler.run(signal),
  })
}

class Reconciliation {
  readonly #deps: ReconcileDeps
  readonly #clock: Clock
  readonly #timings: ClusterTimings
  readonly #absence: EgressAbsence
  /** Where the last run ended. */
  #after: WaitingPair = FIRST_PAGE

  constructor(deps: ReconcileDeps) {
    this.#deps = deps
    this.#clock = deps.database.steadyClock
    this.#timings = deps.timings ?? DEFAULT_CLUSTER_TIMINGS
    this.#absence = new EgressAbsence(this.#clock)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { database, queue, egresses } = this.#deps
    this.#absence.note(egresses())
    if (!(await claimReconciliation(database, this.#timings.reconcileMinMs))) return
    await queue.putAll('route', await jobsWithoutTask(database))
    await this.#putOperators(signal)
    await this.#putPinned()
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
      this.#after = next ?? FIRST_PAGE
      if (next === null) return
      await yieldToEventLoop()
    }
  }

  async #putPinned(): Promise<void> {
    const { database, egressPool } = this.#deps
    const pinned = await overduePinnedItems(database, this.#dueBefore)
    for (const item of pinned.filter(item => this.#canUnpin(item))) {
      await unpinItems(database, item)
      await this.#put([{ operator: item.operator, egress: egressPool.primaryFor(item.operator) }])
    }
    await this.#put(pinned.filter(item => this.#isServed(item)))
  }

  /** Returns true if its egress is gone or no longer serves the operator. */
  #canUnpin({ operator, egress }: PinnedItems): boolean {
    if (this.#absence.isPresent(egress))
      return !this.#deps.egressPool.ranked(operator).includes(egress)
    return this.#absence.absentForMs(egress) >= this.#timings.absentMs
  }

  #isServed(pinned: PinnedItems): boolean {
    return this.#absence.isPresent(pinned.egress) && !this.#canUnpin(pinned)
  }

  get #dueBefore(): number {
    return this.#clock.now() - this.#timings.overdueMs
  }

  async #put(slots: readonly Slot[]): Promise<void> {
    for (const [egress, group] of Map.groupBy(slots, slot => slot.egress)) {
      const keys = new Set(group.map(({ operator }) => slotKey(operator, 0)))
      await this.#deps.queue.putAll(probeKind(egress), [...keys])
    }
  }
}

const FIRST_PAGE: WaitingPair = { operator: '', jobId: '' }
