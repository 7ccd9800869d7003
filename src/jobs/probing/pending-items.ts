import type { ProbeTask } from '../../engine/probing/prepare.ts'
import type { ItemRoute } from '../item-store.ts'
import type { ActiveJob } from '../worker/active-jobs.ts'

/** A routed item that waits in memory for a connection; the database has it as `queued`. */
export type PendingItem = {
  readonly position: number
  readonly copies: number
  readonly task: ProbeTask
  /** When the item was routed, epoch ms. */
  readonly readyAt: number
}

/** Returns the route of an item in the form in which it is stored. */
export const toItemRoute = (
  position: number,
  { operator, address, route, exchangers }: ProbeTask,
): ItemRoute => ({
  position,
  operator: operator.name,
  backupOperator: exchangers[1]?.operator.name ?? null,
  domain: address.domain.ascii,
  route: JSON.stringify(route),
})

/** Returns how many recipients the connections of an operator take at once, over all egresses. */
function capacityOf({ engine: { egressPool } }: ActiveJob, operator: string): number {
  const { sessionsMax, recipientsPerSession } = egressPool.row(operator)
  const egresses = egressPool.sharesLists(operator) ? egressPool.ranked(operator).length : 1
  return egresses * sessionsMax * recipientsPerSession
}

/**
 * Maximum number of items in memory: several for each of a thousand connections. With 20,000, a
 * list of 100,000 rows took 90 MB more and was not faster.
 */
const ITEMS_MAX = 4_000

/** Routed items in memory, by operator and list. A crash loses nothing: they are routed again. */
export class PendingItems {
  readonly #byOperator = new Map<string, Map<ActiveJob, PendingItem[]>>()
  /** Number of items by list, each with a listener that drops them when the list ends. */
  readonly #sizes = new Map<ActiveJob, number>()
  #size = 0

  get isFull(): boolean {
    return this.#size >= ITEMS_MAX
  }

  /** Returns false if the item must be stored: as many of its operator wait as it serves at once. */
  add(list: ActiveJob, item: PendingItem): boolean {
    const operator = item.task.operator.name
    const lists = this.#byOperator.get(operator) ?? new Map<ActiveJob, PendingItem[]>()
    let waiting = 0
    for (const items of lists.values()) waiting += items.length
    if (this.isFull || waiting >= capacityOf(list, operator)) return false
    this.#byOperator.set(operator, lists)
    const items = lists.get(list)
    if (items === undefined) lists.set(list, [item])
    else items.push(item)
    this.#count(list, 1)
    return true
  }

  /** Returns the lists that have items for an operator. */
  listsFor(operator: string): ActiveJob[] {
    return [...(this.#byOperator.get(operator)?.keys() ?? [])]
  }

  /** Returns the number of items of a list by operator. */
  countsFor(jobId: string): Map<string, number> {
    const counts = new Map<string, number>()
    for (const [operator, lists] of this.#byOperator) {
      for (const [{ id }, items] of lists) if (id === jobId) counts.set(operator, items.length)
    }
    return counts
  }

  /** Removes up to `max` items, oldest first; with `backedUpOnly`, only those with a backup. */
  take(
    list: ActiveJob,
    o: { readonly operator: string; readonly max: number; readonly backedUpOnly?: boolean },
  ): PendingItem[] {
    const lists = this.#byOperator.get(o.operator)
    const items = lists?.get(list)
    if (lists === undefined || items === undefined) return []
    const taken: PendingItem[] = []
    const left: PendingItem[] = []
    for (const item of items) {
      const isWanted = !o.backedUpOnly || item.task.exchangers.length > 1
      if (isWanted && taken.length < o.max) taken.push(item)
      else left.push(item)
    }
    this.#set(lists, list, o.operator, left)
    this.#count(list, -taken.length)
    return taken
  }

  #set(
    lists: Map<ActiveJob, PendingItem[]>,
    list: ActiveJob,
    operator: string,
    items: PendingItem[],
  ) {
    if (items.length > 0) lists.set(list, items)
    else lists.delete(list)
    if (lists.size === 0) this.#byOperator.delete(operator)
  }

  #count(list: ActiveJob, change: number) {
    const size = this.#sizes.get(list)
    if (size === undefined && change > 0) {
      list.ended.addEventListener('abort', () => this.#drop(list), { once: true })
    }
    this.#sizes.set(list, (size ?? 0) + change)
    this.#size += change
  }

  #drop(list: ActiveJob) {
    for (const [operator, lists] of this.#byOperator) this.#set(lists, list, operator, [])
    this.#size -= this.#sizes.get(list) ?? 0
    this.#sizes.delete(list)
  }
}
