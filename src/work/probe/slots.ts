import { type Clock, SECOND } from '../../base/clock.ts'
import type { Engine } from '../../engine/engine.ts'
import type { Queue } from '../../queue/queue.ts'
import type { List } from '../crew/lists.ts'

/** One connection that an operator allows to one egress. */
export type Slot = { readonly operator: string; readonly egress: string }

/**
 * How long items of an operator gather before a connection is opened for fewer than it takes, while a list is
 * being routed: a list in the order of its customers names each domain now and then.
 */
const GATHER_MS = 5 * SECOND
/** Operators that may gather at the same time; beyond it they are asked as they are. */
const COUNTED_MAX = 20_000

/** The entries of the queue for operators: one for each connection that they allow to an egress. */
export class Slots {
  readonly #queue: Queue
  readonly #clock: Clock
  /** Operators with fewer items filed since they were last asked than fill a connection, and since when. */
  readonly #gathering = new Map<string, { count: number; readonly since: number }>()

  constructor(queue: Queue, clock: Clock) {
    this.#queue = queue
    this.#clock = clock
  }

  /** One more item was filed: its operator is asked when a connection can be filled, or after a while. */
  gather({ engine, operators }: List, operator: string): Promise<void> {
    const egress = engine.fleet.firstFor(operator)
    if (operators.size < COUNTED_MAX) operators.add(operator)
    if (this.#gathering.size >= COUNTED_MAX) this.#gathering.clear()
    const gathered = this.#gathering.get(operator) ?? { count: 0, since: this.#clock.now() }
    gathered.count++
    this.#gathering.set(operator, gathered)
    const isFull = gathered.count >= engine.pace(operator, egress).row.recipientsPerSession
    if (isFull) this.#gathering.delete(operator)
    return this.put({ operator, egress }, isFull ? undefined : gathered.since + GATHER_MS)
  }

  /** When the items of an operator have gathered long enough, epoch ms; what gathers next counts anew. */
  ripeAt(operator: string): number {
    const ripeAt = (this.#gathering.get(operator)?.since ?? 0) + GATHER_MS
    if (ripeAt <= this.#clock.now()) this.#gathering.delete(operator)
    return ripeAt
  }

  /** Nothing more of a list will gather: its operators are asked now. What was too much to be counted comes due by itself. */
  async ripen({ engine, operators }: List): Promise<void> {
    for (const operator of operators) {
      this.#gathering.delete(operator)
      await this.put({ operator, egress: engine.fleet.firstFor(operator) })
    }
    operators.clear()
  }

  /** All of them, for every egress that may ask; an entry that is there stays as it is. */
  async putAll({ fleet }: Engine, operator: string): Promise<void> {
    const willing = fleet.willing(operator)
    for (const egress of willing.length > 0 ? willing : fleet.inOrder(operator)) {
      const { sessionsMax } = fleet.prober(egress).pace(operator).row
      for (let number = 0; number < sessionsMax; number++) {
        await this.#queue.put('probe', keyOf({ operator, egress }, number))
      }
    }
  }

  /** The first slot of an egress; whoever finds as many items as one connection takes adds all others. */
  put(slot: Slot, dueAt?: number): Promise<void> {
    return this.#queue.put('probe', keyOf(slot, 0), dueAt)
  }
}

const keyOf = ({ operator, egress }: Slot, number: number) => `${operator}|${egress}#${number}`

/** The name of an egress has neither of the two marks. */
export function slotOf(key: string): Slot {
  const bar = key.lastIndexOf('|')
  return { operator: key.slice(0, bar), egress: key.slice(bar + 1, key.lastIndexOf('#')) }
}
