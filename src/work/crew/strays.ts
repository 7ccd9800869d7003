import type { Log } from '../../base/log.ts'
import { startLoop } from '../../base/loop.ts'
import { giveBack, type HeldItem, itemsHeldBy } from '../../store/cluster/held-items.ts'
import type { Database } from '../../store/database.ts'
import type { CrewMembership } from '../start-worker.ts'
import type { CrewTimings } from './crew-timings.ts'

export type StrayParts = {
  readonly database: Database
  readonly log: Log
  readonly cluster: CrewMembership
  readonly stopping: AbortSignal
  readonly timings: Pick<CrewTimings, 'strayLookMs'>
}

/**
 * Items that this member has claimed, as the store says, and that nobody asks about: the answer to the claim was lost
 * with its connection. Nobody else would take them while the member lives.
 */
export class Strays {
  readonly #parts: StrayParts
  readonly #inHand = new Set<string>()
  #seen: ReadonlySet<string> = new Set()
  #isSuspected = false

  constructor(parts: StrayParts) {
    this.#parts = parts
    const { database, log, stopping: signal, timings } = parts
    startLoop({
      ...{ name: 'the check for lost claims', clock: database.clock, log, signal },
      ...{ everyMs: timings.strayLookMs, startAfterMs: timings.strayLookMs },
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
    await giveBack(this.#parts.database, holder, items).catch(() => this.suspect())
  }

  async #look(): Promise<void> {
    if (!this.#isSuspected) return
    const { database, cluster, log } = this.#parts
    const holder = cluster.id
    const held = await itemsHeldBy(database, holder)
    const strays = held.filter(item => !this.#inHand.has(keyOf(item)))
    const twice = strays.filter(item => this.#seen.has(keyOf(item)))
    if (twice.length > 0) {
      await giveBack(database, holder, twice)
      log.info('items that nobody asked about are given back', { items: twice.length })
    }
    this.#seen = new Set(strays.map(keyOf))
    this.#isSuspected = strays.length > twice.length
  }
}

const keyOf = ({ jobId, position }: HeldItem) => `${jobId} ${position}`
