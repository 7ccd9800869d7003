import type { Database } from '../../db/database.ts'
import type { Log } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'
import { type ItemKey, listClaimedItems, releaseItems } from '../item-claims.ts'
import type { WorkerMembership } from './worker-deps.ts'
import type { WorkerTimings } from './worker-timings.ts'

type OrphanedClaimsDeps = {
  readonly database: Database
  readonly log: Log
  readonly cluster: WorkerMembership
  readonly stopping: AbortSignal
  readonly timings: Pick<WorkerTimings, 'orphanPollMs'>
}

/**
 * Releases items that this member has claimed in the store but does not probe, because the reply to
 * the claim was lost with its connection. No other member can claim them while this one is alive.
 */
export class OrphanedClaims {
  readonly #deps: OrphanedClaimsDeps
  readonly #tracked = new Set<string>()
  #seen: ReadonlySet<string> = new Set()
  #isSuspected = false

  constructor(deps: OrphanedClaimsDeps) {
    this.#deps = deps
    const { database, log, stopping: signal, timings } = deps
    startLoop({
      name: 'the check for lost claims',
      clock: database.clock,
      log,
      signal,
      everyMs: timings.orphanPollMs,
      startAfterMs: timings.orphanPollMs,
      run: () => this.#check(),
    })
  }

  /** Requests a check, because a claim failed or items could not be released. */
  suspect(): void {
    this.#isSuspected = true
  }

  track(items: readonly ItemKey[]): void {
    for (const item of items) this.#tracked.add(toKey(item))
  }

  untrack(items: readonly ItemKey[]): void {
    for (const item of items) this.#tracked.delete(toKey(item))
  }

  /** Releases items, at a later check if that fails now. */
  async releaseItems(items: readonly ItemKey[], holder: string | null): Promise<void> {
    if (holder === null) return
    await releaseItems(this.#deps.database, holder, items).catch(() => this.suspect())
  }

  async #check(): Promise<void> {
    if (!this.#isSuspected) return
    const { database, cluster, log } = this.#deps
    const holder = cluster.id
    const held = await listClaimedItems(database, holder)
    const orphans = held.filter(item => !this.#tracked.has(toKey(item)))
    const confirmed = orphans.filter(item => this.#seen.has(toKey(item)))
    if (confirmed.length > 0) {
      await releaseItems(database, holder, confirmed)
      log.info('orphaned claims released', { items: confirmed.length })
    }
    this.#seen = new Set(orphans.map(toKey))
    this.#isSuspected = orphans.length > confirmed.length
  }
}

const toKey = ({ jobId, position }: ItemKey) => `${jobId} ${position}`
