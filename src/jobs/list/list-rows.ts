import type { Database } from '../../db/database.ts'
import type { Acceptance, RouteWithHost } from '../../engine/probe/mx-groups.ts'
import type {
  Feed,
  Postponement,
  Refusal,
  Row,
  RowHistory,
  Sink,
} from '../../engine/scheduler/feed.ts'
import { toRowResult } from '../../engine/verdict/judge.ts'
import { encodeResult } from '../../engine/verdict/stored-result.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import { onAbort } from '../../platform/abort.ts'
import type { Priority } from '../../platform/priority.ts'
import { pinnedItems, unpinItems } from '../item-claims.ts'
import {
  decodeLatest,
  dueItems,
  openItems,
  type QueuedItem,
  queuedItems,
  type StoredItem,
} from '../item-store.ts'
import type { ResultWriter } from '../results/result-writer.ts'
import type { ActiveJob } from '../worker/active-jobs.ts'
import type { WorkerTimings } from '../worker/worker-timings.ts'
import { toItemRoute } from './item-route.ts'

/** A row of a list at the scheduler. */
export type ListItem = {
  readonly jobId: string
  readonly position: number
  readonly copies: number
  /** Whether the database has it as routed, and not as queued. */
  readonly isStored: boolean
}

type ListRowsDeps = {
  readonly database: Database
  readonly writer: Pick<ResultWriter, 'add' | 'flushed' | 'settled' | 'pending'>
  readonly activeJob: ActiveJob
  /** Lets requests go before reads; null if the process serves none. */
  readonly priority: Pick<Priority, 'yieldToRequests'> | null
  /** Reads from the database, again after a temporary error if that is to be waited for. */
  readonly retryRead: <R>(read: () => Promise<R>) => Promise<R>
  readonly timings: Pick<WorkerTimings, 'roundMs'>
  /** Ends the feed. */
  readonly stopping: AbortSignal
}

/** Items read per statement. */
const PAGE_MAX = 500
/** Reading or claiming a page takes as much work as routing this many rows. */
export const READ_ROWS = 10

/**
 * The rows of one list, between its database and the scheduler of its process: the feed reads those
 * that have no result, and the sink hands results and postponements to the result writer.
 *
 * A row has its earlier state in the database until the change is committed, so a crash loses
 * nothing. Rows that wait, for their next attempt or for their operator, take 8 bytes here, and are
 * read again.
 */
export class ListRows implements Feed<ListItem>, Sink<ListItem> {
  readonly isStored = true
  readonly #deps: ListRowsDeps
  /** Position of the last row that was read for the first time. */
  #after = 0
  #isRead = false
  readonly #postponed = new PostponedRows()
  /** Slots whose rows moved to other egresses, and whose egress may be blocked. */
  readonly #suspects = new Map<string, Slot>()
  /** Positions of refused rows by operator. */
  readonly #refused = new Map<string, PositionQueue>()
  /** Positions of rows to read now. */
  readonly #due = new PositionQueue()
  /** The operators that have asked for rows again, by position. */
  readonly #asked = new Map<number, string>()
  /** Number of rows at the scheduler. */
  #given = 0
  /** Whether the last page was empty. */
  #isIdle = false
  #wake: () => void = () => {}

  constructor(deps: ListRowsDeps) {
    this.#deps = deps
    onAbort(deps.stopping, () => this.#wake())
    onAbort(deps.activeJob.finishing, () => this.#wake())
  }

  /** Reads when the rows that were postponed before are due. Call it first. */
  load(): Promise<void> {
    return this.#deps.retryRead(() => this.#load())
  }

  async #load(): Promise<void> {
    const { database, activeJob, writer } = this.#deps
    const { id: jobId, engine } = activeJob
    this.#postponed.takeAll()
    // An earlier run may have results that are not committed yet.
    await writer.flushed()
    for (const { operator, egress } of await pinnedItems(database, jobId)) {
      // Another egress probes them from the start.
      if (!engine.egressPool.ranked(operator).includes(egress)) {
        await unpinItems(database, { jobId, operator, egress })
      }
    }
    for (let after = 0; ; ) {
      const page = await dueItems(database, { jobId, after, max: PAGE_MAX })
      for (const { position, dueAt, operator, egress } of page) {
        this.#postponed.add(dueAt, { operator: operator ?? '', egress }, position)
      }
      if (page.length < PAGE_MAX) return
      after = page.at(-1)?.position ?? after
    }
  }

  async read(max: number): Promise<readonly Row<ListItem>[] | null> {
    const { writer, stopping, priority } = this.#deps
    while (!stopping.aborted) {
      await writer.settled()
      if (this.#hasReadable) await priority?.yieldToRequests('route', READ_ROWS)
      const page = await this.#readPage(Math.min(max, PAGE_MAX))
      if (stopping.aborted) break
      this.#given += page.length
      if (page.length > 0) {
        this.#isIdle = false
        return page
      }
      if (this.#hasReadable) continue
      if (this.#isDone) return null
      if (!this.#isIdle) {
        this.#isIdle = true
        return []
      }
      await this.#waitForRows()
    }
    return null
  }

  decided({ position, copies }: ListItem, result: Result): void {
    this.#given--
    const { writer, activeJob } = this.#deps
    // A row that was postponed before is routed; until then it is queued.
    void writer.add(activeJob.id, {
      results: [{ position, copies, result: toRowResult(result) }],
      holder: null,
    })
    if (this.#isDone || this.#suspects.size > 0) this.#wake()
  }

  postponed({ position }: ListItem, { retry, outcome, task }: Postponement): boolean {
    const { writer, activeJob, database, timings } = this.#deps
    const now = database.steadyClock.now()
    const stored = toPostponed(position, { retry, outcome }, now, timings)
    void writer.add(activeJob.id, { routed: [toItemRoute(position, task)], postponed: [stored] })
    const operator = task.operator.name
    const { dueAt, egress } = stored
    if (retry.delayMs === 0) {
      const slot = { operator, egress: outcome.egress }
      this.#suspects.set(toKey(slot), slot)
      return false
    }
    this.#given--
    this.#postponed.add(dueAt, { operator, egress }, position)
    this.#wake()
    return true
  }

  refused({ position }: ListItem, refusal: Refusal | null): void {
    this.#given--
    if (refusal === null) return
    const operator = refusal.task.operator.name
    const queue = this.#refused.get(operator) ?? new PositionQueue()
    if (queue.isEmpty) this.#refused.set(operator, queue)
    queue.add([position])
  }

  drained(operator: string, room: number): number {
    const queue = this.#refused.get(operator)
    if (queue === undefined) return 0
    const positions = queue.take(room)
    if (queue.isEmpty) this.#refused.delete(operator)
    for (const position of positions) this.#asked.set(position, operator)
    this.#due.add(positions)
    this.#wake()
    return positions.length
  }

  get held(): number {
    return this.#deps.writer.pending
  }

  /** Returns the number of rows that wait for room at their operator. */
  countRefused(): Map<string, number> {
    return new Map([...this.#refused].map(([operator, { size }]) => [operator, size]))
  }

  get #isDone(): boolean {
    return (
      this.#isRead &&
      this.#given === 0 &&
      !this.#hasReadable &&
      this.#postponed.isEmpty &&
      this.#refused.size === 0
    )
  }

  /** Whether the next page has rows, or may have some. */
  get #hasReadable(): boolean {
    const hasWaiting = !this.#postponed.isEmpty || this.#refused.size > 0
    return (
      !this.#isRead || !this.#due.isEmpty || (hasWaiting && this.#deps.activeJob.finishing.aborted)
    )
  }

  async #readPage(max: number): Promise<Row<ListItem>[]> {
    this.#collectDue()
    if (!this.#due.isEmpty) return this.#readAgain(this.#due.take(max))
    if (this.#isRead) return []
    const { database, activeJob, retryRead } = this.#deps
    const { id: jobId } = activeJob
    const page = await retryRead(() => queuedItems(database, { jobId, after: this.#after, max }))
    this.#after = page.at(-1)?.position ?? this.#after
    this.#isRead = page.length < max
    return page.map(item => toRow(jobId, item))
  }

  /** Moves rows that are due to the rows to read now. */
  #collectDue() {
    const { database, activeJob } = this.#deps
    if (activeJob.finishing.aborted) return this.#collectAll()
    this.#due.add(this.#postponed.takeDue(database.steadyClock.now()))
    // Rows that wait for an egress that is blocked move to another one at once.
    for (const [key, { operator, egress }] of this.#suspects) {
      if (egress === null || !activeJob.engine.egressPool.isDeprioritised(egress, operator))
        continue
      this.#suspects.delete(key)
      this.#due.add(this.#postponed.takeSlot({ operator, egress }))
    }
  }

  /** A list that is being finished waits for nothing. */
  #collectAll() {
    this.#due.add(this.#postponed.takeAll())
    for (const queue of this.#refused.values()) this.#due.add(queue.take(queue.size))
    this.#refused.clear()
  }

  async #readAgain(positions: readonly number[]): Promise<Row<ListItem>[]> {
    const { database, writer, activeJob, retryRead } = this.#deps
    // Their last changes may not be committed yet.
    await writer.flushed()
    const now = database.steadyClock.now()
    const rows: Row<ListItem>[] = []
    const { id: jobId } = activeJob
    for (const item of await retryRead(() => openItems(database, { jobId, positions }))) {
      const latest = activeJob.finishing.aborted ? decodeLatest(item) : null
      if (latest === null) {
        rows.push({ ...toRetriedRow(jobId, item, now), askedBy: this.#asked.get(item.position) })
        this.#asked.delete(item.position)
      } else this.#finishWith(item, latest)
    }
    return rows
  }

  /** Gives a row that waited the result of its latest probe. */
  #finishWith({ position, copies }: StoredItem, result: Result) {
    this.#given++
    this.decided({ jobId: this.#deps.activeJob.id, position, copies, isStored: true }, result)
  }

  /** Waits until a row is due or was given back, or all have their results. */
  async #waitForRows(): Promise<void> {
    if (this.#deps.stopping.aborted) return
    const { clock, steadyClock } = this.#deps.database
    const nextAt = this.#postponed.nextAt
    let cancel = () => {}
    await new Promise<void>(resolve => {
      this.#wake = resolve
      if (nextAt !== null) {
        cancel = clock.after(Math.max(0, nextAt - steadyClock.now()), resolve)
      }
    })
    cancel()
    this.#wake = () => {}
  }
}

const toRow = (jobId: string, { position, copies, text }: QueuedItem): Row<ListItem> => ({
  item: { jobId, position, copies, isStored: false },
  text,
  history: null,
})

function toRetriedRow(
  jobId: string,
  { position, copies, text, ...item }: StoredItem,
  now: number,
): Row<ListItem> {
  const isStored = item.state === 'routed'
  return {
    item: { jobId, position, copies, isStored },
    text,
    history: isStored ? toHistory(item, now) : null,
  }
}

/** Returns a postponed row in the form in which it is stored. */
export function toPostponed(
  position: number,
  { retry, outcome }: Pick<Postponement, 'retry' | 'outcome'>,
  now: number,
  { roundMs }: Pick<WorkerTimings, 'roundMs'>,
) {
  const { delayMs, accepted, ...attempts } = retry
  return {
    position,
    // Rounded up, so that rows that are postponed together share a connection again.
    dueAt: delayMs === 0 ? now : Math.ceil((now + delayMs) / roundMs) * roundMs,
    ...attempts,
    accepted: accepted === null ? null : JSON.stringify(accepted),
    latest: { result: encodeResult(outcome.result), isProbed: outcome.asked },
  }
}

/** Returns what is stored of the earlier attempts of a row. */
export const toHistory = (
  item: Pick<StoredItem, 'tries' | 'egress' | 'ready_at' | 'refused_by' | 'accepted' | 'route'>,
  now: number,
): RowHistory => ({
  tries: item.tries,
  egress: item.egress,
  waitedMs: Math.max(0, now - (item.ready_at ?? now)),
  refusedBy: item.refused_by?.split(' ') ?? [],
  accepted: parseStored<Acceptance>(item.accepted),
  route: parseStored<RouteWithHost>(item.route),
})

/** Returns the stored JSON; null if there is none, or if another version of ev wrote it. */
function parseStored<T>(json: string | null): T | null {
  try {
    return json === null ? null : (JSON.parse(json) as T)
  } catch {
    return null
  }
}

/**
 * Positions in the order of their arrival. Taking some does not move the others: a list can have
 * millions of rows at one operator.
 */
class PositionQueue {
  #positions: number[] = []
  /** Index of the first position that is not taken. */
  #start = 0

  get size(): number {
    return this.#positions.length - this.#start
  }

  get isEmpty(): boolean {
    return this.size === 0
  }

  add(positions: readonly number[]): void {
    for (const position of positions) this.#positions.push(position)
  }

  take(max: number): number[] {
    const taken = this.#positions.slice(this.#start, this.#start + max)
    this.#start += taken.length
    // Rarely enough that each position is moved once on average.
    if (this.#start * 2 >= this.#positions.length) {
      this.#positions = this.#positions.slice(this.#start)
      this.#start = 0
    }
    return taken
  }
}

/** The rows that must be probed by one egress; null for any. */
type Slot = { readonly operator: string; readonly egress: string | null }

/** No name of an operator contains a space. */
const toKey = ({ operator, egress }: Slot) => `${operator} ${egress ?? ''}`

/** Positions of rows that wait for a time, epoch ms of the steady clock. */
class PostponedRows {
  readonly #byTime = new Map<number, Map<string, number[]>>()

  add(dueAt: number, slot: Slot, position: number): void {
    const slots = this.#byTime.get(dueAt) ?? new Map<string, number[]>()
    this.#byTime.set(dueAt, slots)
    const key = toKey(slot)
    const positions = slots.get(key)
    if (positions === undefined) slots.set(key, [position])
    else positions.push(position)
  }

  get isEmpty(): boolean {
    return this.#byTime.size === 0
  }

  /** When the next row is due; null if none waits. */
  get nextAt(): number | null {
    return this.isEmpty ? null : Math.min(...this.#byTime.keys())
  }

  /** Removes and returns the rows that are due. */
  takeDue(now: number): number[] {
    const times = [...this.#byTime.keys()].filter(dueAt => dueAt <= now).sort((a, b) => a - b)
    return times.flatMap(dueAt => this.#takeTime(dueAt))
  }

  /** Removes and returns the rows of a slot, due or not. */
  takeSlot(slot: Slot): number[] {
    const key = toKey(slot)
    const taken: number[] = []
    for (const [dueAt, slots] of this.#byTime) {
      for (const position of slots.get(key) ?? []) taken.push(position)
      slots.delete(key)
      if (slots.size === 0) this.#byTime.delete(dueAt)
    }
    return taken
  }

  takeAll(): number[] {
    return [...this.#byTime.keys()].flatMap(dueAt => this.#takeTime(dueAt))
  }

  #takeTime(dueAt: number): number[] {
    const positions = [...(this.#byTime.get(dueAt)?.values() ?? [])].flat()
    this.#byTime.delete(dueAt)
    return positions
  }
}
