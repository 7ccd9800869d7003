import type { RateLimits } from '../../engine/rate-control/limit-table.ts'
import {
  type BlockedState,
  isBlocked,
  newState,
  type RateChange,
  type RateNote,
  type RateState,
} from '../../engine/rate-control/rules.ts'
import type { PermitEnd, RateKey, RateStateHandle } from '../../engine/rate-control/shared-state.ts'
import { onAbort } from '../../platform/abort.ts'
import type { RateRecord, RateVersion } from './rows.ts'
import { SharedRateEntry } from './shared-rate-entry.ts'

/** The registry of the entries in use. */
export interface SharedRateDeps {
  /** Current member ID of this process. */
  readonly member: string
  /** Lifetime of a ticket. */
  readonly ticketMs: number
  now(): number
  active(key: RateKey): SharedRateEntry | undefined
  /** Activates an entry: returns the active one for its key, else this one. */
  use(entry: SharedRateEntry): SharedRateEntry
  /** Schedules a flush of an entry, together with others at the same moment. */
  scheduleFlush(entry: SharedRateEntry): void
}

/**
 * A handle on the shared rate state of an operator and egress. Its entry is created on first use.
 */
export class SharedRateHandle implements RateStateHandle {
  readonly #services: SharedRateDeps
  readonly #key: RateKey
  readonly #limits: RateLimits
  readonly #first: RateState
  /** The last active entry; the stored state may have changed since. */
  #last: SharedRateEntry | null = null

  constructor(services: SharedRateDeps, key: RateKey, limits: RateLimits) {
    this.#services = services
    this.#key = key
    this.#limits = limits
    this.#first = newState(limits)
  }

  get state(): RateState {
    const active = this.#services.active(this.#key)
    if (active !== undefined) return active.state
    if (this.#last === null) return this.#first
    const { state } = this.#last
    const now = this.#services.now()
    // The block may have ended in the meantime: activating the entry polls it.
    if (isBlocked(state, now) || state.pausedUntil > now) this.#use()
    return state
  }

  get sessions(): number {
    return this.#services.active(this.#key)?.sessions ?? 0
  }

  reservedForOthers(single: boolean): number {
    return this.#services.active(this.#key)?.reservedForOthers(single, this.#services.now()) ?? 0
  }

  get isSingleWaiting(): boolean {
    return this.#services.active(this.#key)?.isSingleWaiting(this.#services.now()) ?? false
  }

  now(): number {
    return this.#services.now()
  }

  acquire(signal: AbortSignal, single: boolean): Promise<PermitEnd | null> {
    if (signal.aborted) return Promise.resolve(null)
    const entry = this.#use()
    return new Promise((resolve, reject) => {
      const request = {
        single,
        decide: (isGranted: boolean) => {
          unsubscribe()
          if (!isGranted) return resolve(null)
          const end = this.#createEnd(entry)
          // The permit arrived after the request was aborted.
          if (signal.aborted) end()
          else resolve(end)
        },
        fail: (error: unknown) => {
          unsubscribe()
          reject(error)
        },
      }
      const unsubscribe = onAbort(signal, () => {
        entry.cancel(request)
        resolve(null)
      })
      entry.request(request)
      this.#services.scheduleFlush(entry)
    })
  }

  change(change: RateChange): void {
    const entry = this.#use()
    entry.change(change, this.#services.now(), true)
    this.#services.scheduleFlush(entry)
  }

  note(change: RateNote): void {
    this.#use().change(change, this.#services.now(), false)
  }

  watch(call: () => void, single: boolean): () => void {
    return this.#use().watch(call, single, this.#services.now())
  }

  #createEnd(entry: SharedRateEntry): PermitEnd {
    return () => {
      entry.end()
      this.#services.scheduleFlush(entry)
    }
  }

  #use(): SharedRateEntry {
    this.#last = this.#services.use(
      this.#last ?? new SharedRateEntry(this.#key, this.#limits, this.#services.ticketMs),
    )
    return this.#last
  }
}

/** Formats a rate key as a map key; the name of an egress has no line break. */
export const toMapKey = ({ operator, egress }: RateKey) => `${egress}\n${operator}`

/** The blocks of operators against egresses, from all members. */
export class SharedBlocks {
  readonly #blocks = new Map<string, RateVersion & { readonly refusal: BlockedState }>()

  /** Updates a block from the latest row. */
  note({ operator, egress, version, stored }: RateRecord): void {
    const key = { operator, egress }
    const { refusal } = stored.state
    if (refusal === null) this.#blocks.delete(toMapKey(key))
    else this.#blocks.set(toMapKey(key), { ...key, version, refusal })
  }

  get(key: RateKey): BlockedState | null {
    return this.#blocks.get(toMapKey(key))?.refusal ?? null
  }

  versions(matches: (key: RateKey) => boolean): RateVersion[] {
    return [...this.#blocks.values()].filter(matches)
  }

  deleteExpired(now: number): void {
    for (const [key, { refusal }] of this.#blocks)
      if (refusal.until <= now) this.#blocks.delete(key)
  }
}
