import type { Database } from '../../db/database.ts'
import type {
  Feed,
  Postponement,
  Refusal,
  Row,
  RowHistory,
  Sink,
} from '../../engine/scheduler/feed.ts'
import { toRowResult } from '../../engine/verdict/judge.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import { onAbort } from '../../platform/abort.ts'
import type { Priority } from '../../platform/priority.ts'
import type { Random } from '../../platform/random.ts'
import {
  type Claimable,
  type ClaimedItem,
  claimDueItems,
  claimPinnedItems,
  claimQueuedItems,
  claimRoutedItems,
  claimWaitingItems,
  NO_ROOM_DUE_AT,
} from '../item-claims.ts'
import { decodeLatest, type Postponed } from '../item-store.ts'
import type { ResultWriter } from '../results/result-writer.ts'
import type { ActiveJob } from '../worker/active-jobs.ts'
import type { WorkerTimings } from '../worker/worker-timings.ts'
import { toItemRoute } from './item-route.ts'
import { type ListItem, READ_ROWS, toHistory, toPostponed } from './list-rows.ts'

type ShareRowsDeps = {
  readonly database: Database
  readonly writer: Pick<ResultWriter, 'add' | 'flushed' | 'settled' | 'pending'>
  readonly activeJob: ActiveJob
  /** ID of the member that claims the rows. */
  readonly holder: string
  readonly random: Random
  /** Lets requests go before claims; null if the process serves none. */
  readonly priority: Pick<Priority, 'yieldToRequests'> | null
  /** Ends the run, which releases all rows that this member holds. */
  readonly drain: () => void
  readonly timings: Pick<WorkerTimings, 'roundMs'>
  /** Ends the feed. */
  readonly stopping: AbortSignal
}

/** A row that this member holds. */
type HeldItem = ListItem & { readonly history: RowHistory | null }

/** The rows that only one egress may probe at an operator. */
type Slot = { readonly operator: string; readonly egress: string }

/** Rows per claim. */
const PAGE_MAX = 500
/** Number of values of the first two digits of a domain key, which is hexadecimal. */
const DOMAIN_KEYS = 256

/**
 * The share that this member of a cluster has in the rows of one list: the feed claims rows for
 * which the scheduler of the process has room, and the sink gives back what this member does not
 * probe now.
 *
 * 1. Rows that no member has routed are claimed by domain. Each member starts at a domain of its
 *    own, so that it looks up a domain, and tests it for catch-all, alone.
 * 2. A row whose operator has no room here is stored with its route, due at `NO_ROOM_DUE_AT`, so
 *    that any member with room can take it. This one takes it when its operator has drained.
 * 3. A row that is probed again later is stored with its due time. Any member takes it then that has
 *    the egress to which it is bound.
 * 4. A row that the egress of another member is to probe is stored as due now, bound to that egress.
 *
 * What is claimed here stays as it is in the database until the change of the row is committed, so a
 * crash loses nothing: the expiry of the member, or the end of the run, releases its rows. Each
 * change is accepted only as long as this member holds the row.
 */
export class ShareRows implements Feed<HeldItem>, Sink<HeldItem> {
  readonly #deps: ShareRowsDeps
  /** The least domain key that was not claimed yet. */
  #from: string
  /** Whether rows may be left from there on, or before it. */
  #hasQueued: 'from' | 'before' | 'none' = 'from'
  #hasDue = true
  /** Operators for which rows wait, and that may have room. */
  readonly #offered = new Set<string>()
  /** Rows for which an operator has room, and that are not supplied yet. */
  readonly #asked: Row<HeldItem>[] = []
  /** Operators without room, for which the scheduler asks for rows when they have some. */
  readonly #full = new Set<string>()
  /** Slots whose rows are postponed, by key: they move to other egresses if theirs is blocked. */
  readonly #postponed = new Map<string, Slot>()
  /** Slots whose egress is blocked. */
  readonly #blocked: Slot[] = []
  /** Claims in progress. */
  readonly #claims = new Set<Promise<unknown>>()
  /** Whether the last page was empty. */
  #isIdle = false
  #wake: () => void = () => {}

  constructor(deps: ShareRowsDeps) {
    this.#deps = deps
    this.#from = deps.random.below(DOMAIN_KEYS).toString(16).padStart(2, '0')
    onAbort(deps.stopping, () => this.#wake())
    onAbort(deps.activeJob.finishing, () => {
      this.#hasDue = true
      this.#wake()
    })
  }

  async read(max: number): Promise<readonly Row<HeldItem>[] | null> {
    try {
      return await this.#read(max)
    } catch (error) {
      // The claim may be committed although its reply is lost: then this member holds rows that it
      // does not know of.
      this.#deps.drain()
      throw error
    }
  }

  async #read(max: number): Promise<readonly Row<HeldItem>[] | null> {
    const { writer, stopping, priority } = this.#deps
    while (!stopping.aborted) {
      await writer.settled()
      this.#findBlocked()
      if (this.#hasClaimable) await priority?.yieldToRequests('route', READ_ROWS)
      if (stopping.aborted) break
      const page =
        this.#asked.length > 0
          ? this.#asked.splice(0, max)
          : this.#toRows(await this.#track(this.#claimPage(Math.min(max, PAGE_MAX))))
      if (stopping.aborted) break
      if (page.length > 0) {
        this.#isIdle = false
        return page
      }
      if (this.#hasClaimable || this.#asked.length > 0) continue
      if (!this.#isIdle) {
        this.#isIdle = true
        return []
      }
      await new Promise<void>(resolve => {
        this.#wake = resolve
        if (stopping.aborted) resolve()
      })
    }
    return null
  }

  /** Resolves when no claim is in progress. Call it once the feed has been ended. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#claims)
  }

  async #track<T>(claim: Promise<T>): Promise<T> {
    this.#claims.add(claim)
    try {
      return await claim
    } finally {
      this.#claims.delete(claim)
    }
  }

  /** Claims what a poll has found. */
  offer({ hasQueued, hasDue, operators }: Omit<Claimable, 'jobId'>): void {
    if (hasQueued && this.#hasQueued === 'none') this.#hasQueued = 'from'
    if (hasDue) this.#hasDue = true
    for (const operator of operators) if (!this.#full.has(operator)) this.#offered.add(operator)
    this.#wake()
  }

  decided({ position, copies }: HeldItem, result: Result): void {
    const { writer, activeJob, holder } = this.#deps
    const results = [{ position, copies, result: toRowResult(result) }]
    void writer.add(activeJob.id, { results, holder })
  }

  postponed(item: HeldItem, { retry, outcome, task }: Postponement): boolean {
    const { activeJob, database, timings } = this.#deps
    const { egressPool } = activeJob.engine
    const operator = task.operator.name
    const { egress, delayMs } = retry
    if (delayMs === 0 && (egress === null || egressPool.names.includes(egress))) return false
    const now = database.steadyClock.now()
    const row = toPostponed(item.position, { retry, outcome }, now, timings)
    this.#store({ ...row, route: toItemRoute(item.position, task), readyAt: now })
    if (egress !== null) this.#postponed.set(`${operator} ${egress}`, { operator, egress })
    return true
  }

  refused({ position, history }: HeldItem, refusal: Refusal | null): void {
    // The end of the run releases all rows that this member still holds.
    if (refusal === null) return
    const { egressPool } = this.#deps.activeJob.engine
    const { task, isElsewhere } = refusal
    const operator = task.operator.name
    if (!isElsewhere) this.#full.add(operator)
    const isBound = isElsewhere && !egressPool.sharesLists(operator)
    const now = this.#deps.database.steadyClock.now()
    this.#store({
      position,
      dueAt: isBound ? now : NO_ROOM_DUE_AT,
      tries: history?.tries ?? 0,
      egress: isBound ? egressPool.primaryFor(operator) : (history?.egress ?? null),
      refusedBy: history?.refusedBy ?? [],
      accepted:
        history === null || history.accepted === null ? null : JSON.stringify(history.accepted),
      route: toItemRoute(position, task),
      readyAt: now,
    })
  }

  async drained(operator: string, room: number): Promise<number> {
    this.#full.delete(operator)
    try {
      // What was refused just now is not committed yet.
      await this.#deps.writer.flushed()
      if (this.#deps.stopping.aborted) return 0
      const items = await this.#track(this.#claimWaiting(operator, room))
      const rows = this.#toRows(items)
      for (const row of rows) this.#asked.push({ ...row, askedBy: operator })
      // As long as rows follow, the scheduler asks for them.
      if (rows.length > 0) this.#full.add(operator)
      return rows.length
    } catch {
      this.#deps.drain()
      return 0
    } finally {
      this.#wake()
    }
  }

  get held(): number {
    return this.#deps.writer.pending
  }

  /** Stores a row that any member may claim from now on, or when it is due. */
  #store(row: Omit<Postponed, 'fence'>) {
    const { writer, activeJob, holder } = this.#deps
    void writer.add(activeJob.id, { postponed: [row], holder })
  }

  /** Whether the next page has rows, or may have some. */
  get #hasClaimable(): boolean {
    return (
      this.#hasQueued !== 'none' ||
      this.#hasDue ||
      this.#offered.size > 0 ||
      this.#blocked.length > 0
    )
  }

  /** Finds postponed rows whose egress is blocked since. */
  #findBlocked() {
    const { egressPool } = this.#deps.activeJob.engine
    for (const [key, slot] of this.#postponed) {
      const { operator, egress } = slot
      if (!egressPool.names.includes(egress)) this.#postponed.delete(key)
      else if (egressPool.isDeprioritised(egress, operator)) {
        this.#postponed.delete(key)
        this.#blocked.push(slot)
      }
    }
  }

  async #claimPage(max: number): Promise<readonly ClaimedItem[]> {
    if (this.#blocked.length > 0) return this.#claimBlocked(max)
    const offered = await this.#claimOffered(max)
    if (offered.length > 0) return offered
    const due = this.#hasDue ? await this.#claimDue(max) : []
    return due.length > 0 ? due : this.#claimQueued(max)
  }

  /** Rows that wait for an egress that is blocked move to another one at once. */
  async #claimBlocked(max: number): Promise<readonly ClaimedItem[]> {
    const slot = this.#blocked[0] as Slot
    // What was postponed just now is not committed yet.
    await this.#deps.writer.flushed()
    const items = await claimPinnedItems(this.#deps.database, this.#shareOf(max), slot)
    if (items.length < max) this.#blocked.shift()
    return items
  }

  async #claimOffered(max: number): Promise<readonly ClaimedItem[]> {
    for (const operator of this.#offered) {
      this.#offered.delete(operator)
      const items = await this.#claimWaiting(operator, max)
      if (items.length > 0) return items
    }
    return []
  }

  #claimWaiting(operator: string, max: number): Promise<readonly ClaimedItem[]> {
    const { database, activeJob } = this.#deps
    const { egressPool } = activeJob.engine
    return claimWaitingItems(database, this.#shareOf(max), {
      operator,
      egresses: egressPool.names,
      isBoundOnly: !egressPool.probesHere(operator),
    })
  }

  async #claimDue(max: number): Promise<readonly ClaimedItem[]> {
    const { database, activeJob } = this.#deps
    const share = this.#shareOf(max)
    const egresses = activeJob.engine.egressPool.names
    const now = database.steadyClock.now()
    const items = activeJob.finishing.aborted
      ? await claimRoutedItems(database, share)
      : await claimDueItems(database, share, { egresses, now })
    if (items.length < max) this.#hasDue = false
    return items
  }

  /** Claims to the last domain, and then from the first one. */
  async #claimQueued(max: number): Promise<readonly ClaimedItem[]> {
    if (this.#hasQueued === 'none') return []
    const items = await claimQueuedItems(this.#deps.database, this.#shareOf(max), this.#from)
    if (items.length === max) this.#from = items.at(-1)?.domainKey ?? this.#from
    else if (this.#hasQueued === 'from' && this.#from !== '') {
      this.#from = ''
      this.#hasQueued = 'before'
    } else this.#hasQueued = 'none'
    return items
  }

  #shareOf(max: number) {
    const { activeJob, holder } = this.#deps
    return { jobId: activeJob.id, holder, max }
  }

  #toRows(items: readonly ClaimedItem[]): Row<HeldItem>[] {
    const { database, activeJob } = this.#deps
    const now = database.steadyClock.now()
    const rows: Row<HeldItem>[] = []
    for (const item of items) {
      const { position, copies, text } = item
      const history = item.operator === null ? null : toHistory(item, now)
      const held = { jobId: activeJob.id, position, copies, isStored: false, history }
      const latest = activeJob.finishing.aborted ? decodeLatest(item) : null
      if (latest === null) rows.push({ item: held, text, history })
      else this.decided(held, latest)
    }
    return rows
  }
}
