import type { Engine } from '../../engine/engine.ts'
import type { EgressPool } from '../../engine/probe/egress-pool.ts'
import type { Clock } from '../../platform/clock.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import type { ActiveJob } from '../worker/active-jobs.ts'
import { DEFAULT_WORKER_TIMINGS, type WorkerTimings } from '../worker/worker-timings.ts'
import type { ProbeTasks, Slot } from './probe-tasks.ts'

export type { Slot } from './probe-tasks.ts'

/** Operators that may gather at the same time; beyond it they are asked as they are. */
const COUNTED_MAX = 20_000
/** Egresses that one calls when it has too much to do. */
const FAN_OUT = 4

/** When all entries of an operator were put, and how long that is taken to hold. */
type Wakeup = { readonly at: number; waitMs: number; readonly among: readonly string[] }

type Gathering = { count: number; readonly since: number; putAt: number }

/**
 * How long items gather, how often an entry is put again where others take entries away, and up to
 * which interval that doubles while there is more to do: others may have given up theirs meanwhile.
 */
type SlotTimings = Pick<WorkerTimings, 'gatherMs' | 'againMs' | 'againMaxMs'>

/** Which entries of the queue there must be for operators: one for each connection that they allow to an egress. */
export class ProbeScheduler {
  readonly #entries: ProbeTasks
  readonly #clock: Clock
  readonly #isShared: boolean
  readonly #timings: SlotTimings
  /** Operators with fewer items filed since they were last asked than fill a connection, and since when. */
  readonly #gathering = new Map<string, Gathering>()
  /** By operator. */
  readonly #calls: TtlMap<Wakeup>
  #turn = 0

  /** `isShared`: others work on the entries too, and putting one takes time. */
  constructor(
    entries: ProbeTasks,
    clock: Clock,
    isShared: boolean,
    timings: SlotTimings = DEFAULT_WORKER_TIMINGS,
  ) {
    this.#timings = timings
    this.#entries = entries
    this.#clock = clock
    this.#isShared = isShared
    this.#calls = new TtlMap({ sizeMax: COUNTED_MAX, clock })
  }

  /** One more item was filed: its operator is asked when a connection can be filled, or after a while. */
  async onItemRouted({ engine, operators }: ActiveJob, operator: string): Promise<void> {
    const egress = engine.egressPool.primaryFor(operator)
    if (operators.size < COUNTED_MAX) operators.add(operator)
    if (this.#gathering.size >= COUNTED_MAX) this.#gathering.clear()
    const now = this.#clock.now()
    const gathered = this.#gatheringOf(operator, now)
    gathered.count++
    const isFull = gathered.count >= engine.egressPool.row(operator).recipientsPerSession
    if (isFull) this.#gathering.delete(operator)
    else if (this.#isShared && now - gathered.putAt < this.#timings.againMs) return
    gathered.putAt = now
    await this.put(
      { operator, egress },
      isFull ? undefined : gathered.since + this.#timings.gatherMs,
    )
  }

  #gatheringOf(operator: string, now: number): Gathering {
    const known = this.#gathering.get(operator)
    // Where others may have asked for it, nobody here does, and notices that it has gathered for long enough.
    if (known !== undefined && !(this.#isShared && known.since + this.#timings.gatherMs <= now))
      return known
    const started = { count: 0, since: now, putAt: Number.NEGATIVE_INFINITY }
    this.#gathering.set(operator, started)
    return started
  }

  /** When the items of an operator have gathered long enough, epoch ms; what gathers next counts anew. */
  readyAt(operator: string): number {
    // An entry that others may have put is due when it says so.
    if (this.#isShared) return Number.NEGATIVE_INFINITY
    const readyAt = (this.#gathering.get(operator)?.since ?? 0) + this.#timings.gatherMs
    if (readyAt <= this.#clock.now()) this.#gathering.delete(operator)
    return readyAt
  }

  /** Nothing more of a list will gather: its operators are asked now. What was too much to be counted comes due by itself. */
  async flushJob({ engine, operators }: ActiveJob): Promise<void> {
    const put = (operator: string) => {
      this.#gathering.delete(operator)
      return this.put({ operator, egress: engine.egressPool.primaryFor(operator) })
    }
    await Promise.all([...operators].map(put))
    operators.clear()
  }

  /** All of them, for every egress that `egress` is to call; an entry that is there stays as it is. */
  async putAll({ egressPool }: Engine, { operator, egress }: Slot): Promise<void> {
    if (this.#isShared && !this.#shouldCall(operator, egressPool.all)) return
    const { sessionsMax } = egressPool.row(operator)
    const asking = this.#called(egressPool, operator, egress)
    const put = asking.map(name => this.#entries.putAll({ operator, egress: name }, sessionsMax))
    // Whoever found that there is so much to do need not wait for others to hear of it.
    if (!this.#isShared) await Promise.all(put)
    else for (const entered of put) entered.catch(() => this.#calls.delete(operator))
  }

  /** An operator had less to do than a connection takes: whoever found nothing gave its entry up. */
  onEmptyClaim(operator: string): void {
    const call = this.#calls.get(operator)
    if (call !== undefined) call.waitMs = this.#timings.againMs
  }

  #shouldCall(operator: string, among: readonly string[]): boolean {
    const now = this.#clock.monotonicNow()
    const last = this.#calls.get(operator)
    const isSame = last?.among === among
    if (isSame && now - last.at < last.waitMs) return false
    const waitMs = isSame
      ? Math.min(last.waitMs * 2, this.#timings.againMaxMs)
      : this.#timings.againMs
    this.#calls.set(operator, { at: now, waitMs, among }, 2 * this.#timings.againMaxMs)
    return true
  }

  /**
   * Whom an egress calls when there is more than it takes at once: all, where they are few. Where they are many each
   * calls the next few of a tree, who call theirs: all are there after some steps, and nobody calls a thousand each
   * second. One that stands still calls nobody, so each time one more is called, by turns.
   */
  #called(egressPool: EgressPool, operator: string, egress: string): readonly string[] {
    if (!egressPool.sharesLists(operator)) return [egressPool.primaryFor(operator)]
    const order = egressPool.ranked(operator)
    if (order.length <= FAN_OUT * 2) {
      const available = egressPool.availableFor(operator)
      return available.length > 0 ? available : order
    }
    const called = new Set([egress])
    const callBelow = (slot: number) => {
      const first = slot * FAN_OUT + 1
      for (const [n, name] of order.slice(first, first + FAN_OUT).entries()) {
        // Whoever calls one that may not ask calls those below it.
        if (egressPool.mayAsk(name, operator)) called.add(name)
        else callBelow(first + n)
      }
    }
    callBelow(Math.max(0, order.indexOf(egress)))
    // The root may be one of those that may not.
    if (egress === egressPool.primaryFor(operator)) callBelow(0)
    called.add(order[this.#turn++ % order.length] as string)
    return [...called]
  }

  /** The first slot of an egress; whoever finds as many items as one connection takes adds all others. */
  put(slot: Slot, dueAt?: number): Promise<void> {
    return this.#entries.put(slot, dueAt)
  }
}
