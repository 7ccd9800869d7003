import { LRUCache } from 'lru-cache'
import type { Database } from '../../db/database.ts'
import { type ClaimedItem, claimItems, jobsWaitingFor } from '../item-claims.ts'
import type { ActiveJob, ActiveJobs } from '../worker/active-jobs.ts'
import type { Slot } from './probe-tasks.ts'

/** A claimed item and its list. */
export type ClaimedRow = ClaimedItem & { readonly list: ActiveJob }

/** Maximum number of operators with a stored round-robin position; an evicted one starts over. */
const OPERATORS_MAX = 20_000

/**
 * Claims items for connections from all lists round-robin, so that a small list does not wait
 * behind a large one.
 */
export class Claims {
  readonly #database: Database
  readonly #lists: ActiveJobs
  /** By operator, the ID of the list after which its next connection starts. */
  readonly #positions = new LRUCache<string, string>({ max: OPERATORS_MAX })

  constructor(database: Database, lists: ActiveJobs) {
    this.#database = database
    this.#lists = lists
  }

  /** Returns the lists that have items waiting for an operator, in the order of their IDs. */
  async waitingFor(operator: string): Promise<ActiveJob[]> {
    const ids = await jobsWaitingFor(this.#database, operator)
    return this.#lists.load(ids)
  }

  /**
   * Claims up to `max` items of these lists: each list gets an equal share, and the remainder goes
   * to lists with more items.
   */
  async claim(
    lists: readonly ActiveJob[],
    o: Slot & {
      readonly pinnedOnly?: boolean
      readonly backedUpOnly?: boolean
      readonly max: number
      readonly now: number
      /** The cluster member that claims the items; null or left out without a cluster. */
      readonly holder?: string | null
    },
  ): Promise<ClaimedRow[]> {
    const claimed: ClaimedRow[] = []
    let served = this.#nextLists(lists, o.operator, o.max)
    while (served.length > 0 && claimed.length < o.max) {
      const share = Math.max(1, Math.floor((o.max - claimed.length) / served.length))
      const withMore: ActiveJob[] = []
      for (const list of served) {
        const max = Math.min(share, o.max - claimed.length)
        if (max === 0) break
        // A resumed job has a new list, so items claimed for its ended list would be lost.
        if (list.ended.aborted) continue
        const items = await claimItems(this.#database, { ...o, jobId: list.id, max })
        claimed.push(...items.map(item => ({ ...item, list })))
        if (items.length === share) withMore.push(list)
      }
      served = withMore
    }
    return claimed
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
