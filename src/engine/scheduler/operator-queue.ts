import { groupBy } from '../../platform/es2024.ts'
import type { MxOperator } from '../dns/operators.ts'
import { mxGroupKey } from '../probe/mx-groups.ts'
import type { ProbeTask } from '../probe/prepare.ts'
import type { AttemptHistory } from '../probe/retry-policy.ts'
import type { RateLimits } from '../rate-control/limit-table.ts'
import type { Row } from './feed.ts'

/** A row that waits for a probe, with its attempt history and the run `R` to which it belongs. */
export type PendingRow<R> = Omit<AttemptHistory, 'waitedMs'> & {
  readonly run: R
  readonly row: Row<unknown>
  readonly task: ProbeTask
  /** When it first became ready for a probe, monotonic ms. */
  readonly since: number
  /** Number of its probes that failed internally. */
  readonly faults: number
}

/** Pending rows that can share a connection: one set of MX hosts, and one egress or any. */
export type MxBatch<R> = {
  readonly mxKey: string
  readonly egress: string | null
  rows: PendingRow<R>[]
  /** When the last row arrived, monotonic ms. */
  lastAt: number
  /** True while more rows may arrive, so that it is not probed unless it is full. */
  isGathering: boolean
  /** Number of domains of which rows are being routed to it. */
  arriving: number
}

/** Which rows an egress may take. */
type TakeOptions<R> = {
  /** Whether it takes rows that are not pinned to it. */
  readonly takesFree: boolean
  /** Whether it takes free rows that do not fill a connection. */
  readonly takesPartial: boolean
  /** Returns the most recipients of a connection whose first one is this. */
  readonly capacityFor: (first: PendingRow<R>) => number
}

/** The pending rows of all runs at one operator, and the number of workers per egress. */
export class OperatorQueue<R> {
  readonly operator: MxOperator
  /** The rate limits of the operator. */
  readonly limits: RateLimits
  readonly #batches = new Map<string, MxBatch<R>>()
  /** The batches that may be taken, by egress, in the order in which they became ready. */
  readonly #full = new BatchSets<R>()
  readonly #partial = new BatchSets<R>()
  /** By egress. Null until one starts, because a long list has thousands of queues. */
  #workers: Map<string, number> | null = null
  /**
   * Runs that share a batch, in the order in which they were served, the latest last. Null until some
   * did.
   */
  #served: Set<R> | null = null

  constructor(operator: MxOperator, limits: RateLimits) {
    this.operator = operator
    this.limits = limits
  }

  /**
   * Adds a row to the batch of its MX hosts and returns the batch; `isGathering`: more may
   * arrive.
   */
  add(pending: PendingRow<R>, now: number, isGathering: boolean): MxBatch<R> {
    const { egress, task } = pending
    const mxKey = mxGroupKey(task.exchangers[0].route)
    const key = batchKey(mxKey, egress)
    const batch = this.#batches.get(key) ?? {
      mxKey,
      egress,
      rows: [],
      lastAt: now,
      isGathering,
      arriving: 0,
    }
    if (batch.rows.push(pending) === 1) this.#batches.set(key, batch)
    batch.lastAt = now
    batch.isGathering = isGathering
    this.#file(batch)
    return batch
  }

  /**
   * Lets the batch of a row wait for more rows again, if it has some that do not fill a connection.
   * Returns null if it has none.
   */
  gatherRest({ egress, task }: PendingRow<R>, now: number): MxBatch<R> | null {
    const batch = this.#batches.get(batchKey(mxGroupKey(task.exchangers[0].route), egress))
    if (batch === undefined) return null
    batch.lastAt = now
    batch.isGathering = true
    this.#file(batch)
    return batch
  }

  /** Returns the batch of a task that any egress may take, if it has rows. */
  batchOf(task: ProbeTask): MxBatch<R> | undefined {
    return this.#batches.get(mxGroupKey(task.exchangers[0].route))
  }

  /** Lets a batch be taken though it does not fill a connection. */
  markReady(batch: MxBatch<R>): void {
    batch.isGathering = false
    if (batch.rows.length > 0) this.#file(batch)
  }

  /** Lets the batch of a task be taken though it does not fill a connection. */
  markHostsReady(task: ProbeTask): void {
    const batch = this.batchOf(task)
    if (batch !== undefined) this.markReady(batch)
  }

  /** Lets the batches be taken that have rows of a run. */
  markRunReady(run: R): void {
    for (const batch of this.#batches.values()) {
      if (batch.isGathering && batch.rows.some(pending => pending.run === run)) {
        this.markReady(batch)
      }
    }
  }

  /** Whether a batch fills a connection. */
  get hasFull(): boolean {
    return !this.#full.isEmpty
  }

  get isEmpty(): boolean {
    return this.#batches.size === 0
  }

  /**
   * Removes and returns the recipients of the next connection of an egress, all for one set of MX
   * hosts: first those pinned to it. Empty if nothing may be taken now.
   */
  take(egress: string, { takesFree, takesPartial, capacityFor }: TakeOptions<R>): PendingRow<R>[] {
    const pinned = older(this.#full.first(egress), this.#partial.first(egress))
    const partial = takesPartial ? this.#partial.first(null) : undefined
    const batch = pinned ?? (takesFree ? older(this.#full.first(null), partial) : undefined)
    const first = batch?.rows[0]
    if (batch === undefined || first === undefined) return []
    const sizeMax = capacityFor(first)
    const taken = this.#takeFrom(batch, sizeMax)
    const same = batch === pinned && takesFree ? this.#batches.get(batch.mxKey) : undefined
    if (same === undefined || taken.length >= sizeMax) return taken
    return [...taken, ...this.#takeFrom(same, sizeMax - taken.length)]
  }

  /**
   * Removes and returns rows for a connection whose hosts have a backup at another operator; all for
   * one set of MX hosts.
   */
  takeBackedUp(egress: string, takesFree: boolean): PendingRow<R>[] {
    for (const batch of this.#batches.values()) {
      if (batch.egress !== egress && !(takesFree && batch.egress === null)) continue
      const taken = batch.rows.filter(hasBackup).slice(0, this.limits.recipientsPerSession)
      if (taken.length === 0) continue
      const left = new Set(batch.rows)
      for (const row of taken) left.delete(row)
      batch.rows = [...left]
      this.#file(batch)
      return taken
    }
    return []
  }

  /** Removes and returns the rows that pass. */
  takeWhere(passes: (pending: PendingRow<R>) => boolean): PendingRow<R>[] {
    const taken: PendingRow<R>[] = []
    for (const batch of [...this.#batches.values()]) {
      const kept: PendingRow<R>[] = []
      for (const pending of batch.rows) (passes(pending) ? taken : kept).push(pending)
      if (kept.length === batch.rows.length) continue
      batch.rows = kept
      this.#file(batch)
    }
    return taken
  }

  /** The runs that have pending rows. */
  get runs(): ReadonlySet<R> {
    return new Set([...this.#batches.values()].flatMap(({ rows }) => rows.map(({ run }) => run)))
  }

  /** Returns the number of rows that pass. */
  count(isCounted: (pending: PendingRow<R>) => boolean): number {
    let count = 0
    for (const { rows } of this.#batches.values()) {
      for (const pending of rows) if (isCounted(pending)) count++
    }
    return count
  }

  workers(egress: string): number {
    return this.#workers?.get(egress) ?? 0
  }

  /** Records that a worker started (1) or stopped (-1). */
  countWorker(egress: string, change: 1 | -1) {
    const count = this.workers(egress) + change
    this.#workers ??= new Map()
    if (count === 0) this.#workers.delete(egress)
    else this.#workers.set(egress, count)
  }

  /** Whether no row is pending and no worker runs. */
  get isDone(): boolean {
    return this.isEmpty && (this.#workers?.size ?? 0) === 0
  }

  #takeFrom(batch: MxBatch<R>, sizeMax: number): PendingRow<R>[] {
    const [taken, rest] = this.#split(batch.rows, sizeMax)
    batch.rows = rest
    // The rest comes last, so that the batches of other hosts have their turn.
    this.#full.delete(batch)
    this.#file(batch)
    return taken
  }

  /** Splits off at most `sizeMax` rows, of each run in turn. */
  #split(rows: PendingRow<R>[], sizeMax: number): Split<R> {
    const run = rows[0]?.run
    if (rows.length <= sizeMax) return [rows, []]
    if (rows.every(pending => pending.run === run)) return splitByDomain(rows, sizeMax)
    const byRun = groupBy(rows, pending => pending.run)
    const before = this.#served ?? new Set()
    const served = [...before].filter(one => byRun.has(one))
    const turns = [...[...byRun.keys()].filter(one => !before.has(one)), ...served]
    const counts = new Map(turns.map(one => [one, 0]))
    for (let left = sizeMax; left > 0; ) {
      for (const one of turns) {
        const count = counts.get(one) ?? 0
        if (left === 0 || count === byRun.get(one)?.length) continue
        counts.set(one, count + 1)
        left--
      }
    }
    const taken: PendingRow<R>[] = []
    const after = new Set(turns.filter(one => counts.get(one) === 0))
    this.#served = after
    for (const [one, count] of counts) {
      if (count === 0) continue
      for (const pending of splitByDomain(byRun.get(one) ?? [], count)[0]) taken.push(pending)
      after.add(one)
    }
    const isTaken = new Set(taken)
    return [taken, rows.filter(pending => !isTaken.has(pending))]
  }

  /** Puts a batch where it belongs after a change. */
  #file(batch: MxBatch<R>) {
    const { rows, isGathering, mxKey, egress } = batch
    // One recipient of a full connection is for the catch-all probe.
    const isFull = rows.length >= Math.max(1, this.limits.recipientsPerSession - 1)
    if (isFull) this.#full.add(batch)
    else this.#full.delete(batch)
    if (!isFull && !isGathering && rows.length > 0) this.#partial.add(batch)
    else this.#partial.delete(batch)
    if (rows.length === 0) this.#batches.delete(batchKey(mxKey, egress))
  }
}

const hasBackup = ({ task }: PendingRow<unknown>) => task.exchangers.length > 1

/** Returns the batch whose first row has waited longer. */
function older<R>(
  one: MxBatch<R> | undefined,
  other: MxBatch<R> | undefined,
): MxBatch<R> | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return (other.rows[0]?.since ?? 0) < (one.rows[0]?.since ?? 0) ? other : one
}

/** No host name contains a space. */
const batchKey = (mxKey: string, egress: string | null) =>
  egress === null ? mxKey : `${egress}  ${mxKey}`

/** Sets of batches, by egress; null until there are any, because a long list has thousands. */
class BatchSets<R> {
  /** The batches that any egress may take. */
  #free: Set<MxBatch<R>> | null = null
  #pinned: Map<string, Set<MxBatch<R>>> | null = null

  add(batch: MxBatch<R>): void {
    const { egress } = batch
    const set = this.#find(egress) ?? new Set()
    set.add(batch)
    if (egress === null) this.#free = set
    else {
      this.#pinned ??= new Map()
      this.#pinned.set(egress, set)
    }
  }

  delete(batch: MxBatch<R>): void {
    const set = this.#find(batch.egress)
    if (!set?.delete(batch) || set.size > 0) return
    if (batch.egress === null) this.#free = null
    else this.#pinned?.delete(batch.egress)
  }

  first(egress: string | null): MxBatch<R> | undefined {
    return this.#find(egress)?.values().next().value
  }

  get isEmpty(): boolean {
    return this.#free === null && (this.#pinned?.size ?? 0) === 0
  }

  #find(egress: string | null): Set<MxBatch<R>> | null {
    return egress === null ? this.#free : (this.#pinned?.get(egress) ?? null)
  }
}

type Split<R> = [taken: PendingRow<R>[], rest: PendingRow<R>[]]

/**
 * Splits off at most `sizeMax` rows: first those of the domain that has waited longest, then the
 * others in order.
 */
function splitByDomain<R>(pending: PendingRow<R>[], sizeMax: number): Split<R> {
  if (pending.length <= sizeMax) return [pending, []]
  const domain = pending[0]?.task.address.domain.ascii
  const same = pending.filter(({ task }) => task.address.domain.ascii === domain)
  const others = pending.filter(({ task }) => task.address.domain.ascii !== domain)
  const capacity = Math.max(0, sizeMax - same.length)
  return [
    [...same.slice(0, sizeMax), ...others.slice(0, capacity)],
    [...same.slice(sizeMax), ...others.slice(capacity)],
  ]
}
