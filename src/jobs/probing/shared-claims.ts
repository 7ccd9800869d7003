import type { Database } from '../../db/database.ts'
import type { Engine } from '../../engine/engine.ts'
import { Batcher } from '../../platform/batcher.ts'
import { createLru } from '../../platform/lru.ts'
import { claimOperators, nextDueByOperator, type OperatorItem } from '../item-claims.ts'
import type { ActiveJobs } from '../worker/active-jobs.ts'
import type { OrphanedClaims } from '../worker/orphaned-claims.ts'
import { type ClaimedRow, OPERATORS_MAX } from './claims.ts'
import type { Slot } from './probe-tasks.ts'

type SharedClaimsDeps = {
  readonly database: Database
  readonly lists: ActiveJobs
  readonly orphans: Pick<OrphanedClaims, 'suspect' | 'releaseItems'>
}

type ClaimRequest = Slot & {
  readonly max: number
  /** The cluster member that claims the items. */
  readonly holder: string
}

/** Maximum items per statement, so that a claim does not wait long for those of other slots. */
const ITEMS_MAX = 2_000
/** Maximum operators whose next due time one statement reads. */
const OPERATORS_PER_READ = 500

/**
 * Claims items in a cluster on PostgreSQL. One statement claims for all connections that wait for
 * items at the time, from all lists in turn, so that a small list does not wait behind a large one.
 */
export class SharedClaims {
  readonly #deps: SharedClaimsDeps
  readonly #claims: Batcher<ClaimRequest, readonly ClaimedRow[]>
  readonly #dueTimes: Batcher<Slot, number | null>
  /** By operator, the ID of the list after which its next items are taken. */
  readonly #positions = createLru<string>(OPERATORS_MAX)

  constructor(deps: SharedClaimsDeps) {
    const { database } = deps
    const { clock } = database
    this.#deps = deps
    this.#claims = new Batcher({
      clock,
      sizeMax: ITEMS_MAX,
      sizeOf: ({ max }) => max,
      run: requests => this.#runClaims(requests),
    })
    this.#dueTimes = new Batcher({
      clock,
      sizeMax: OPERATORS_PER_READ,
      run: slots => nextDueByOperator(database, slots),
    })
  }

  /** The engine of the lists; null while no list is active here. */
  get engine(): Engine | null {
    return this.#deps.lists.engine
  }

  /** Claims up to `max` due items for a connection. */
  claim(request: ClaimRequest): Promise<readonly ClaimedRow[]> {
    return this.#claims.add(request)
  }

  /** Returns when the next item for a slot is due, epoch ms; null if no item waits. */
  nextDueAt(slot: Slot): Promise<number | null> {
    return this.#dueTimes.add(slot)
  }

  async #runClaims(requests: readonly ClaimRequest[]): Promise<(readonly ClaimedRow[] | Error)[]> {
    const results = new Map<ClaimRequest, readonly ClaimedRow[] | Error>()
    for (const groups of toRounds(requests)) {
      try {
        await this.#claimRound(groups, results)
      } catch (error) {
        // The claim may be committed although its reply is lost.
        this.#deps.orphans.suspect()
        const failure = error instanceof Error ? error : new Error(String(error))
        for (const request of groups.flat()) results.set(request, failure)
      }
    }
    return requests.map(request => results.get(request) ?? [])
  }

  /** Claims for groups of requests, each for another operator. */
  async #claimRound(
    groups: readonly ClaimRequest[][],
    results: Map<ClaimRequest, readonly ClaimedRow[] | Error>,
  ): Promise<void> {
    const { database, lists } = this.#deps
    const claims = groups.map(group => {
      const { operator, egress, holder } = group[0] as ClaimRequest
      const after = this.#positions.get(operator) ?? ''
      return { operator, egress, holder, after, max: sumOfMax(group) }
    })
    const items = await claimOperators(database, { claims, now: database.steadyClock.now() })
    // A job that ended a moment ago may be open again.
    const jobIds = new Set(items.map(item => item.job_id))
    const loaded = await lists.load([...jobIds], { isFresh: true })
    const listById = new Map(loaded.map(list => [list.id, list]))
    const byOperator = Map.groupBy(items, item => item.operator)
    const ended: OperatorItem[] = []
    for (const [at, group] of groups.entries()) {
      const { operator, after, max } = claims[at] as (typeof claims)[number]
      const rows: ClaimedRow[] = []
      const claimed = (byOperator.get(operator) ?? []).sort(byDomain)
      this.#advance(operator, after, { claimed, max })
      for (const item of claimed) {
        const list = listById.get(item.job_id)
        if (list === undefined) ended.push(item)
        else rows.push({ ...item, list })
      }
      for (const request of group) results.set(request, rows.splice(0, request.max))
    }
    await this.#release(ended)
  }

  /** Releases items of jobs that ended while their items were claimed. */
  async #release(items: readonly OperatorItem[]): Promise<void> {
    for (const [holder, group] of Map.groupBy(items, item => item.holder)) {
      const keys = group.map(({ job_id, position }) => ({ jobId: job_id, position }))
      await this.#deps.orphans.releaseItems(keys, holder)
    }
  }

  /**
   * The next claim starts one list further, or after the last one if there were more lists than
   * items.
   */
  #advance(
    operator: string,
    after: string,
    { claimed, max }: { readonly claimed: readonly OperatorItem[]; readonly max: number },
  ): void {
    const jobs = [...new Set(claimed.map(({ job_id }) => job_id))].sort()
    const inTurn = [...jobs.filter(id => id > after), ...jobs.filter(id => id <= after)]
    const last = inTurn.length === max ? inTurn.at(-1) : inTurn[0]
    if (last !== undefined) this.#positions.set(operator, last)
  }
}

const sumOfMax = (group: readonly ClaimRequest[]) => group.reduce((sum, { max }) => sum + max, 0)

/** Orders items so that those of a domain share a connection, whatever their list. */
const byDomain = (a: OperatorItem, b: OperatorItem) =>
  compare(a.domain, b.domain) || compare(a.job_id, b.job_id) || a.position - b.position

const compare = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1)

/**
 * Groups the requests of each operator, egress and member, and divides the groups into rounds with
 * one group for each operator: two in one statement would claim the same items.
 */
function toRounds(requests: readonly ClaimRequest[]): ClaimRequest[][][] {
  const groups = Map.groupBy(requests, ({ operator, egress, holder }) =>
    JSON.stringify([operator, egress, holder]),
  )
  const rounds: ClaimRequest[][][] = []
  const counts = new Map<string, number>()
  for (const group of groups.values()) {
    const { operator } = group[0] as ClaimRequest
    const round = counts.get(operator) ?? 0
    counts.set(operator, round + 1)
    rounds[round] = [...(rounds[round] ?? []), group]
  }
  return rounds
}
