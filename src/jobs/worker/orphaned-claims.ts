import type { Database } from '../../db/database.ts'
import type { Log } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'
import { type HeldItem, itemsOf, releaseItems } from '../item-claims.ts'
import type { WorkerMembership } from './worker-deps.ts'
import type { WorkerTimings } from './worker-timings.ts'

export type OrphanedClaimsDeps = {
  readonly database: Database
  readonly log: Log
  readonly cluster: WorkerMembership
  readonly stopping: AbortSignal
  readonly timings: Pick<WorkerTimings, 'orphanPollMs'>
}

/**
 * Items that this member has claimed, as the store says, and that nobody asks about: the answer to the claim was lost
 * with its connection. Nobody else would take them while the member lives.
 */
export class OrphanedClaims {
  readonly #deps: OrphanedClaimsDeps
  readonly #inHand = new Set<string>()
  #seen: ReadonlySet<string> = new Set()
  #isSuspected = false

  constructor(deps: OrphanedClaimsDeps) {
    this.#deps = deps
    const { database, log, stopping: signal, timings } = deps
    startLoop({
      ...{ name: 'the check for lost claims', clock: database.clock, log, signal },
      ...{ everyMs: timings.orphanPollMs, startAfterMs: timings.orphanPollMs },
      run: () => this.#look(),
    })
  }

  /** A claim failed, or items could not be given back. */
  suspect(): void {
    this.#isSuspected = true
  }

  take(items: readonly HeldItem[]): void {
    for (const item of items) this.#inHand.add(keyOf(item))
  }

  release(items: readonly HeldItem[]): void {
    for (const item of items) this.#inHand.delete(keyOf(item))
  }

  /** Where that fails now, it is done later. */
  async giveBack(items: readonly HeldItem[], holder: string | null): Promise<void> {
    if (holder === null) return
    await releaseItems(this.#deps.database, holder, items).catch(() => this.suspect())
  }

  async #look(): Promise<void> {
    if (!this.#isSuspected) return
    const { database, cluster, log } = this.#deps
    const holder = cluster.id
    const held = await itemsOf(database, holder)
    const orphans = held.filter(item => !this.#inHand.has(keyOf(item)))
    const twice = orphans.filter(item => this.#seen.has(keyOf(item)))
    if (twice.length > 0) {
      await releaseItems(database, holder, twice)
      log.info('items that nobody asked about are given back', { items: twice.length })
    }
    this.#seen = new Set(orphans.map(keyOf))
    this.#isSuspected = orphans.length > twice.length
  }
}

const keyOf = ({ jobId, position }: HeldItem) => `${jobId} ${position}`
