import type { Engine } from '../../engine/engine.ts'
import type { EgressPool } from '../../engine/probe/egress-pool.ts'
import type { Clock } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { ActiveJob } from '../worker/active-jobs.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from '../worker/worker-timings.ts'
import type { ProbeTasks, Slot } from './probe-tasks.ts'

export type { Slot } from './probe-tasks.ts'

/**
 * Maximum number of operators with gathering items; beyond it operators are probed with the items
 * they have.
 */
const COUNTED_MAX = 20_000
/** Number of egresses that one egress wakes when it has too much to do. */
const FAN_OUT = 4

/** Returns the second of the two slots that a slot enqueues. */
const lastChild = (number: number) => 2 * number + 2

/** When all tasks of an operator were enqueued, and for how long they are assumed to be there. */
type Wakeup = { readonly at: number; waitMs: number; readonly among: readonly string[] }

export type RoutedItems = {
  readonly operator: string
  /** Number of items that were stored. */
  readonly stored: number
  /** Whether the operator serves only the domain of these items, and no more of them follow. */
  readonly isComplete: boolean
}

type Gathering = { stored: number; readonly since: number; putAt: number }

/**
 * How long items gather, how often a task is enqueued again where other members may complete it,
 * and up to which interval that backs off while there is more to do.
 */
type SlotTimings = Pick<WorkerTimings, 'gatherMs' | 'requeueMs' | 'requeueMaxMs'>

/**
 * Decides which tasks the queue must have for operators: one for each connection that they allow to
 * an egress.
 */
export class ProbeScheduler {
  readonly #tasks: ProbeTasks
  readonly #clock: Clock
  readonly #isShared: boolean
  readonly #timings: SlotTimings
  /**
   * Operators with fewer items routed since their last probe than fill a connection, and since
   * when.
   */
  readonly #gathering = new Map<string, Gathering>()
  /** Last wakeup by operator. */
  readonly #wakeups: TtlMap<Wakeup>
  #roundRobin = 0

  /**
   * `isShared` is true if other members work on the tasks too; enqueueing one then takes a round
   * trip.
   */
  constructor(
    tasks: ProbeTasks,
    clock: Clock,
    isShared: boolean,
    timings: SlotTimings = DEFAULT_WORKER_TIMINGS,
  ) {
    this.#timings = timings
    this.#tasks = tasks
    this.#clock = clock
    this.#isShared = isShared
    this.#wakeups = new TtlMap({ sizeMax: COUNTED_MAX, clock })
  }

  /**
   * Counts routed items: their operator is probed when a connection can be filled, after a while,
   * or at once if no more of its items follow.
   */
  async onItemsRouted(
    { engine, operators }: ActiveJob,
    { operator, stored, isComplete }: RoutedItems,
  ): Promise<void> {
    const egress = engine.egressPool.primaryFor(operator)
    if (operators.size < COUNTED_MAX) operators.add(operator)
    if (this.#gathering.size >= COUNTED_MAX) this.#gathering.clear()
    const now = this.#clock.now()
    const gathered = this.#getGathering(operator, now)
    gathered.stored += stored
    const { recipientsPerSession } = engine.egressPool.row(operator)
    const isReady = isComplete || gathered.stored >= recipientsPerSession
    if (isReady) this.#gathering.delete(operator)
    else if (this.#isShared && now - gathered.putAt < this.#timings.requeueMs) return
    gathered.putAt = now
    await this.put(
      { operator, egress },
      isReady ? undefined : gathered.since + this.#timings.gatherMs,
    )
  }

  #getGathering(operator: string, now: number): Gathering {
    const known = this.#gathering.get(operator)
    // In a cluster, another member may probe the operator, so this process must end gathering by
    // time.
    if (known !== undefined && !(this.#isShared && known.since + this.#timings.gatherMs <= now))
      return known
    const started = { stored: 0, since: now, putAt: Number.NEGATIVE_INFINITY }
    this.#gathering.set(operator, started)
    return started
  }

  /**
   * Returns when the items of an operator have gathered long enough, epoch ms; after that,
   * gathering starts over.
   */
  readyAt(operator: string): number {
    // A task that another member may have enqueued is ready when it is due.
    if (this.#isShared) return Number.NEGATIVE_INFINITY
    const readyAt = (this.#gathering.get(operator)?.since ?? 0) + this.#timings.gatherMs
    if (readyAt <= this.#clock.now()) this.#gathering.delete(operator)
    return readyAt
  }

  /**
   * Enqueues the operators of a list now, because no more of its items are routed. Operators beyond
   * the maximum are not counted and become due on their own.
   */
  async flushJob({ engine, operators }: ActiveJob): Promise<void> {
    const put = (operator: string) => {
      this.#gathering.delete(operator)
      return this.put({ operator, egress: engine.egressPool.primaryFor(operator) })
    }
    await Promise.all([...operators].map(put))
    operators.clear()
  }

  /**
   * Enqueues more slots of every egress that `egress` is to wake; tasks that exist stay as they are.
   * In a single process a slot enqueues two others, which do the same if they find as much to do:
   * an operator may allow hundreds of connections and have items for three. In a cluster, where
   * each step costs round trips, it enqueues all.
   */
  async putAll({ egressPool }: Engine, { operator, egress, number = 0 }: Slot): Promise<void> {
    if (this.#isShared && !this.#shouldWake(operator, egressPool.all)) return
    const { sessionsMax } = egressPool.row(operator)
    const egresses = this.#egressesToWake(egressPool, operator, egress)
    const count = this.#isShared ? sessionsMax : Math.min(sessionsMax, lastChild(number) + 1)
    const put = egresses.map(name => this.#tasks.putAll({ operator, egress: name }, count))
    // In a cluster the caller does not wait until other members are woken.
    if (!this.#isShared) await Promise.all(put)
    else for (const entered of put) entered.catch(() => this.#wakeups.delete(operator))
  }

  /**
   * Resets the backoff of an operator that had less to do than a connection takes: slots that found
   * nothing have completed their tasks.
   */
  onEmptyClaim(operator: string): void {
    const wakeup = this.#wakeups.get(operator)
    if (wakeup !== undefined) wakeup.waitMs = this.#timings.requeueMs
  }

  #shouldWake(operator: string, among: readonly string[]): boolean {
    const now = this.#clock.monotonicNow()
    const last = this.#wakeups.get(operator)
    const isSame = last?.among === among
    if (isSame && now - last.at < last.waitMs) return false
    const waitMs = isSame
      ? Math.min(last.waitMs * 2, this.#timings.requeueMaxMs)
      : this.#timings.requeueMs
    this.#wakeups.set(operator, { at: now, waitMs, among }, 2 * this.#timings.requeueMaxMs)
    return true
  }

  /**
   * Returns the egresses to wake when there is more than one egress takes at once: all if they are
   * few. If they are many, each wakes its children in a tree, so that all are awake after some
   * steps and no egress wakes a thousand others each second. An egress that stalls wakes no others,
   * so each call also wakes one more, round-robin.
   */
  #egressesToWake(egressPool: EgressPool, operator: string, egress: string): readonly string[] {
    if (!egressPool.sharesLists(operator)) return [egressPool.primaryFor(operator)]
    const order = egressPool.ranked(operator)
    if (order.length <= FAN_OUT * 2) {
      const available = egressPool.availableFor(operator)
      return available.length > 0 ? available : order
    }
    const woken = new Set([egress])
    const wakeChildren = (slot: number) => {
      const first = slot * FAN_OUT + 1
      for (const [n, name] of order.slice(first, first + FAN_OUT).entries()) {
        // The children of an egress that may not probe are woken in its place.
        if (egressPool.mayAsk(name, operator)) woken.add(name)
        else wakeChildren(first + n)
      }
    }
    wakeChildren(Math.max(0, order.indexOf(egress)))
    // The root itself may be unable to probe.
    if (egress === egressPool.primaryFor(operator)) wakeChildren(0)
    woken.add(order[this.#roundRobin++ % order.length] as string)
    return [...woken]
  }

  /**
   * Enqueues the first slot of an egress; a probe that finds as many items as one connection takes
   * adds the others.
   */
  put(slot: Slot, dueAt?: number): Promise<void> {
    return this.#tasks.put(slot, dueAt)
  }
}
