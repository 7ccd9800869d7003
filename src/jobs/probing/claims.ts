import type { Database } from '../../db/database.ts'
import { createLru } from '../../platform/lru.ts'
import { type ClaimedItem, claimItems, jobsWaitingFor, nextDueAt } from '../item-claims.ts'
import type { ActiveJob, ActiveJobs } from '../worker/active-jobs.ts'
import type { Slot } from './probe-tasks.ts'

/** A claimed item and its list. */
export type ClaimedRow = ClaimedItem & { readonly list: ActiveJob }

/** Maximum number of operators with a stored round-robin position; an evicted one starts over. */
export const OPERATORS_MAX = 20_000

type ClaimOptions = Slot & {
  readonly pinnedOnly?: boolean
  readonly backedUpOnly?: boolean
  readonly max: number
  readonly now: number
  /** The cluster member that claims the items; null or left out without a cluster. */
  readonly holder?: string | null
  /** Called if a claim fails. It may be committed although its reply is lost. */
  readonly onFailure?: () => void
}

/**
 * Claims items for connections from all lists round-robin, so that a small list does not wait
 * behind a large one.
 */
export class Claims {
  readonly #database: Database
  readonly #lists: ActiveJobs
  /** By operator, the ID of the list after which its next connection starts. */
  readonly #positions = createLru<string>(OPERATORS_MAX)

  constructor(database: Database, lists: ActiveJobs) {
    this.#database = database
    this.#lists = lists
  }

  /**
   * Returns the lists that have items to probe at an operator, in the order of their IDs: not those
   * that are being finished.
   */
  async waitingFor(operator: string): Promise<ActiveJob[]> {
    const ids = await jobsWaitingFor(this.#database, operator)
    return ids.length === 0 ? [] : (await this.#lists.load(ids)).filter(isProbed).sort(byId)
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
  nextDueAt(list: ActiveJob, slot: Slot, pinnedOnly: boolean): Promise<number | null> {
    return nextDueAt(this.#database, { jobId: list.id, ...slot, pinnedOnly })
  }

  async #claimItems(list: ActiveJob, o: ClaimOptions, claimed: ClaimedRow[]): Promise<void> {
    const items = await claimItems(this.#database, { ...o, jobId: list.id })
    for (const item of items) claimed.push({ ...item, list })
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
