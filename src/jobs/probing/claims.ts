import { LRUCache } from 'lru-cache'
import type { Database } from '../../db/database.ts'
import { type ClaimedItem, claimItems, jobsWaitingFor } from '../item-claims.ts'
import type { ActiveJob, ActiveJobs } from '../worker/active-jobs.ts'
import type { Slot } from './probe-tasks.ts'

/** An item, and whose it is. */
export type ClaimedRow = ClaimedItem & { readonly list: ActiveJob }

/** Operators whose turn is remembered; one that is forgotten begins anew. */
const OPERATORS_MAX = 20_000

/** Takes items for connections from all lists in turn, so that a small list does not wait behind a large one. */
export class Claims {
  readonly #database: Database
  readonly #lists: ActiveJobs
  /** The list after which an operator's next connection begins. */
  readonly #turns = new LRUCache<string, string>({ max: OPERATORS_MAX })

  constructor(database: Database, lists: ActiveJobs) {
    this.#database = database
    this.#lists = lists
  }

  /** The lists that have items waiting for an operator, in the order of their IDs. */
  async waitingFor(operator: string): Promise<ActiveJob[]> {
    const ids = await jobsWaitingFor(this.#database, operator)
    return this.#lists.load(ids)
  }

  /** Takes up to `max` items of these lists: each gets its share, and what is left over goes to those with more. */
  async take(
    lists: readonly ActiveJob[],
    o: Slot & {
      readonly ownOnly?: boolean
      readonly backedUpOnly?: boolean
      readonly max: number
      readonly now: number
      /** The member of the cluster that takes them; null or left out: there is no cluster. */
      readonly holder?: string | null
    },
  ): Promise<ClaimedRow[]> {
    const claimed: ClaimedRow[] = []
    let served = this.#inTurn(lists, o.operator, o.max)
    while (served.length > 0 && claimed.length < o.max) {
      const share = Math.max(1, Math.floor((o.max - claimed.length) / served.length))
      const withMore: ActiveJob[] = []
      for (const list of served) {
        const max = Math.min(share, o.max - claimed.length)
        if (max === 0) break
        // Whoever goes on with a job that was cancelled has a list of his own: these items would be asked for nobody.
        if (list.over.aborted) continue
        const items = await claimItems(this.#database, { ...o, jobId: list.id, max })
        claimed.push(...items.map(item => ({ ...item, list })))
        if (items.length === share) withMore.push(list)
      }
      served = withMore
    }
    return claimed
  }

  /** Those whose turn it is: all, or as many as a connection takes. The next connection begins one further on. */
  #inTurn(lists: readonly ActiveJob[], operator: string, max: number): readonly ActiveJob[] {
    if (lists.length < 2) return lists
    const last = this.#turns.get(operator) ?? ''
    const at = Math.max(
      0,
      lists.findIndex(({ id }) => id > last),
    )
    const served = [...lists.slice(at), ...lists.slice(0, at)].slice(0, max)
    const started = served.length === lists.length ? served[0] : served.at(-1)
    this.#turns.set(operator, started?.id ?? '')
    return served
  }
}
