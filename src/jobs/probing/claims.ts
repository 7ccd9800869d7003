import type { Database } from '../../db/database.ts'
import { createLru } from '../../platform/lru.ts'
import { type ClaimedItem, claimItems, jobsWaitingFor, nextDueAt } from '../item-claims.ts'
import type { ActiveJob, ActiveJobs } from '../worker/active-jobs.ts'
import { type PendingItem, PendingItems } from './pending-items.ts'
import type { Slot } from './probe-tasks.ts'

/** A claimed item and its list; `pending` is null if the item was claimed in the database. */
export type ClaimedRow = ClaimedItem & {
  readonly list: ActiveJob
  readonly pending: PendingItem | null
}

/** Maximum number of operators with a stored round-robin position; an evicted one starts over. */
export const OPERATORS_MAX = 20_000

type ClaimOptions = Slot & {
  readonly pinnedOnly?: boolean
  readonly backedUpOnly?: boolean
  /** Claims only items in memory that fill a connection. */
  readonly fullOnly?: boolean
  readonly max: number
  readonly now: number
  /** The cluster member that claims the items; null or left out without a cluster. */
  readonly holder?: string | null
  /** Called if a claim fails. It may be committed although its reply is lost. */
  readonly onFailure?: () => void
}

/**
 * Claims items for connections from all lists round-robin, so that a small list does not wait
 * behind a large one. With `inMemory`, most items wait in memory between routing and probe, and the
 * database is read only for operators that may have stored items.
 */
export class Claims {
  readonly #database: Database
  readonly #lists: ActiveJobs
  /** By operator, the ID of the list after which its next connection starts. */
  readonly #positions = createLru<string>(OPERATORS_MAX)
  /** Null if all items are claimed in the database. */
  readonly #pending: PendingItems | null
  /**
   * Operators that may have stored items, each with the number of the last note; not used without
   * items in memory.
   */
  readonly #stored = new Map<string, number>()
  #noteCount = 0

  constructor(database: Database, lists: ActiveJobs, o: { readonly inMemory: boolean }) {
    this.#database = database
    this.#lists = lists
    this.#pending = o.inMemory ? new PendingItems(database.clock) : null
  }

  /** Whether this many more items fit into memory; true if none are kept there. */
  hasRoomFor(count: number): boolean {
    return this.#pending?.hasRoomFor(count) ?? true
  }

  /** Resolves with true when items in memory are taken; with false if they wait for operators. */
  async nextTake(): Promise<boolean> {
    return (await this.#pending?.nextTake()) ?? false
  }

  /** Returns the number of items of a list that wait in memory, by operator. */
  waitingInMemory(jobId: string): ReadonlyMap<string, number> {
    return this.#pending?.countsFor(jobId) ?? new Map()
  }

  /**
   * Keeps a routed item in memory until it is claimed. Returns the number of connections that such
   * items of its operator fill; null if the item must be stored.
   */
  keep(list: ActiveJob, item: PendingItem): number | null {
    const filled = this.#pending?.add(list, item) ?? null
    if (filled !== null) list.kept.add(item.position)
    return filled
  }

  /** Returns an item that was claimed in memory and not probed. */
  putBack({ list, pending }: ClaimedRow): void {
    if (pending !== null && !list.ended.aborted) this.#pending?.putBack(list, pending)
  }

  /** Removes the items of a list that wait in memory and returns them. */
  takeKept(list: ActiveJob): readonly PendingItem[] {
    return this.#pending?.takeAll(list) ?? []
  }

  /** Whether items wait in memory for an operator. */
  hasKept(operator: string): boolean {
    return (this.#pending?.listsFor(operator).length ?? 0) > 0
  }

  /** Records that items of an operator were stored; call it after the commit. */
  noteStored(operator: string): void {
    if (this.#pending !== null) this.#stored.set(operator, ++this.#noteCount)
  }

  /**
   * Returns the lists that have items to probe at an operator, in the order of their IDs: not those
   * that are being finished.
   */
  async waitingFor(operator: string): Promise<ActiveJob[]> {
    const kept = this.#pending?.listsFor(operator) ?? []
    const ids = await this.#storedJobs(operator)
    const stored = ids.length === 0 ? [] : await this.#lists.load(ids)
    return [...new Set([...stored, ...kept])].filter(isProbed).sort(byId)
  }

  /**
   * Claims up to `max` items of these lists: each list gets an equal share, and the remainder goes
   * to lists with more items. If a claim fails, as on a full disk, it returns the items claimed
   * before, which no other slot would probe; it throws only if there are none.
   */
  async claim(lists: readonly ActiveJob[], o: ClaimOptions): Promise<ClaimedRow[]> {
    const claimed: ClaimedRow[] = []
    try {
      await this.#claimShares(lists, o, claimed)
    } catch (error) {
      o.onFailure?.()
      if (claimed.length === 0) throw error
    }
    return claimed
  }

  /** Adds the items to `claimed`. */
  async #claimShares(
    lists: readonly ActiveJob[],
    o: ClaimOptions,
    claimed: ClaimedRow[],
  ): Promise<void> {
    let served = this.#nextLists(lists, o.operator, o.max)
    while (served.length > 0 && claimed.length < o.max) {
      const share = Math.max(1, Math.floor((o.max - claimed.length) / served.length))
      const withMore: ActiveJob[] = []
      for (const list of served) {
        const max = Math.min(share, o.max - claimed.length)
        if (max === 0) break
        // A resumed job has a new list, so items claimed for its ended list would be lost.
        if (list.ended.aborted || !isProbed(list)) continue
        const before = claimed.length
        await this.#claimItems(list, { ...o, max }, claimed)
        if (claimed.length - before === share) withMore.push(list)
      }
      served = withMore
    }
  }

  /** Returns when the next item of a list is due, epoch ms; null if no item waits. */
  async nextDueAt(list: ActiveJob, slot: Slot, pinnedOnly: boolean): Promise<number | null> {
    const isKept = this.#pending?.listsFor(slot.operator).includes(list) ?? false
    if (isKept && !pinnedOnly) return this.#database.steadyClock.now()
    return nextDueAt(this.#database, { jobId: list.id, ...slot, pinnedOnly })
  }

  async #storedJobs(operator: string): Promise<string[]> {
    const note = this.#stored.get(operator)
    if (this.#pending !== null && note === undefined) return []
    const ids = await jobsWaitingFor(this.#database, operator)
    // Items may have been stored since the query.
    if (ids.length === 0 && this.#stored.get(operator) === note) this.#stored.delete(operator)
    return ids
  }

  async #claimItems(list: ActiveJob, o: ClaimOptions, claimed: ClaimedRow[]): Promise<void> {
    // Items in memory are not pinned to an egress.
    const kept = o.pinnedOnly ? [] : (this.#pending?.take(list, o) ?? [])
    for (const item of kept) claimed.push(fromPending(list, item))
    const max = o.max - kept.length
    if (max === 0 || o.fullOnly || (this.#pending !== null && !this.#stored.has(o.operator))) return
    const items = await claimItems(this.#database, { ...o, jobId: list.id, max })
    for (const item of items) claimed.push({ ...item, list, pending: null })
  }

  /**
   * Returns the lists to serve: all, or as many as a connection takes. The next connection starts
   * one list further.
   */
  #nextLists(lists: readonly ActiveJob[], operator: string, max: number): readonly ActiveJob[] {
    if (lists.length < 2) return lists
    const last = this.#positions.get(operator) ?? ''
    const at = Math.max(
      0,
      lists.findIndex(({ id }) => id > last),
    )
    const served = [...lists.slice(at), ...lists.slice(0, at)].slice(0, max)
    const cursor = served.length === lists.length ? served[0] : served.at(-1)
    this.#positions.set(operator, cursor?.id ?? '')
    return served
  }
}

const isProbed = ({ finishing }: ActiveJob) => !finishing.aborted

const byId = (a: ActiveJob, b: ActiveJob) => (a.id < b.id ? -1 : 1)

const fromPending = (list: ActiveJob, pending: PendingItem): ClaimedRow => ({
  list,
  pending,
  position: pending.position,
  copies: pending.copies,
  text: pending.task.text,
  ready_at: pending.readyAt,
  tries: 0,
  route: null,
  egress: null,
  refused_by: null,
  accepted: null,
  holder: null,
})
