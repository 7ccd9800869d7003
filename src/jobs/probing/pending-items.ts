import { mxGroupKey } from '../../engine/probe/mx-groups.ts'
import type { ProbeTask } from '../../engine/probing/prepare.ts'
import { onAbort } from '../../platform/abort.ts'
import type { Clock } from '../../platform/clock.ts'
import type { ItemRoute } from '../item-store.ts'
import type { ActiveJob } from '../worker/active-jobs.ts'
import { DrainMonitor } from './drain-monitor.ts'

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

type TakeOptions = {
  readonly operator: string
  readonly max: number
  /** Takes only items that have a backup operator. */
  readonly backedUpOnly?: boolean
  /** Takes only from a group that has `max` items. */
  readonly fullOnly?: boolean
}

/** The items of one operator in groups that can share a connection: by list and MX hosts. */
type OperatorItems = { readonly lists: Map<ActiveJob, Map<string, PendingItem[]>>; count: number }

/** Routed items in memory, by operator and list. A crash loses nothing: they are routed again. */
export class PendingItems {
  readonly #byOperator = new Map<string, OperatorItems>()
  /** Number of items by list, each with a listener that drops them when the list ends. */
  readonly #sizes = new Map<ActiveJob, number>()
  #size = 0
  readonly #drain: DrainMonitor

  constructor(clock: Clock) {
    this.#drain = new DrainMonitor(clock)
  }

  hasRoomFor(count: number): boolean {
    return this.#size + count <= ITEMS_MAX
  }

  /** Resolves with true when items are taken; with false if those in memory wait for operators. */
  nextTake(): Promise<boolean> {
    return this.#drain.nextTake()
  }

  /**
   * Returns the number of connections that the items of the operator may fill; 0 while those with
   * the same MX hosts fill none. Returns null if the item must be stored, because as many of its
   * operator wait as it serves at once.
   */
  add(list: ActiveJob, item: PendingItem): number | null {
    const { name } = item.task.operator
    const waiting = this.#byOperator.get(name)?.count ?? 0
    if (!this.hasRoomFor(1) || waiting >= capacityOf(list, name)) return null
    const { recipientsPerSession } = list.engine.egressPool.row(name)
    const size = this.putBack(list, item)
    return size < recipientsPerSession ? 0 : Math.floor((waiting + 1) / recipientsPerSession)
  }

  /**
   * Adds an item that was taken but not probed, whatever the limits. Returns the number of items
   * with the same MX hosts.
   */
  putBack(list: ActiveJob, item: PendingItem): number {
    const { operator, exchangers } = item.task
    const items = this.#byOperator.get(operator.name) ?? { lists: new Map(), count: 0 }
    this.#byOperator.set(operator.name, items)
    const groups = items.lists.get(list) ?? new Map<string, PendingItem[]>()
    items.lists.set(list, groups)
    const mxKey = mxGroupKey(exchangers[0].route)
    const group = groups.get(mxKey) ?? []
    if (group.push(item) === 1) groups.set(mxKey, group)
    this.#count(list, items, 1)
    return group.length
  }

  /** Returns the lists that have items for an operator. */
  listsFor(operator: string): ActiveJob[] {
    return [...(this.#byOperator.get(operator)?.lists.keys() ?? [])]
  }

  /** Returns the number of items of a list by operator. */
  countsFor(jobId: string): Map<string, number> {
    const counts = new Map<string, number>()
    for (const [operator, { lists }] of this.#byOperator) {
      for (const [{ id }, groups] of lists) {
        if (id === jobId) counts.set(operator, [...groups.values()].flat().length)
      }
    }
    return counts
  }

  /**
   * Removes up to `max` items for one connection: of a group that fills it, or of the oldest group.
   */
  take(list: ActiveJob, o: TakeOptions): PendingItem[] {
    const items = this.#byOperator.get(o.operator)
    const groups = items?.lists.get(list)
    if (items === undefined || groups === undefined) return []
    let found: { readonly mxKey: string; readonly wanted: readonly PendingItem[] } | null = null
    for (const [mxKey, group] of groups) {
      const wanted = o.backedUpOnly ? group.filter(hasBackup) : group
      const isFull = wanted.length >= o.max
      if (isFull || (found === null && wanted.length > 0 && !o.fullOnly)) found = { mxKey, wanted }
      if (isFull) break
    }
    if (found === null) return []
    const { mxKey, wanted } = found
    const taken = wanted.slice(0, o.max)
    const left = new Set(groups.get(mxKey))
    for (const item of taken) left.delete(item)
    if (left.size > 0) groups.set(mxKey, [...left])
    else groups.delete(mxKey)
    if (groups.size === 0) items.lists.delete(list)
    this.#count(list, items, -taken.length)
    if (items.count === 0) this.#byOperator.delete(o.operator)
    this.#drain.onTaken(taken.length)
    return taken
  }

  /** Removes all items of a list and returns them. */
  takeAll(list: ActiveJob): PendingItem[] {
    const taken: PendingItem[] = []
    for (const [operator, items] of this.#byOperator) {
      const ofList = [...(items.lists.get(list)?.values() ?? [])].flat()
      items.count -= ofList.length
      items.lists.delete(list)
      if (items.count === 0) this.#byOperator.delete(operator)
      taken.push(...ofList)
    }
    this.#size -= taken.length
    if (this.#sizes.has(list)) this.#sizes.set(list, 0)
    this.#drain.onTaken(taken.length)
    return taken
  }

  #count(list: ActiveJob, items: OperatorItems, change: number) {
    const size = this.#sizes.get(list)
    if (size === undefined && change > 0) {
      onAbort(list.ended, () => {
        this.takeAll(list)
        this.#sizes.delete(list)
      })
    }
    this.#sizes.set(list, (size ?? 0) + change)
    this.#size += change
    items.count += change
  }
}

const hasBackup = ({ task }: PendingItem) => task.exchangers.length > 1
