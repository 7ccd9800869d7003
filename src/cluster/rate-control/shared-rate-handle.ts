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
import type { RateRecord, RateVersion } from './rows.ts'
import { SharedRateEntry } from './shared-rate-entry.ts'

/** Where the entries are that are in use. */
export interface SharedRateDeps {
  /** The ID that this process has as a member at present. */
  readonly member: string
  /** How long a ticket holds. */
  readonly ticketMs: number
  now(): number
  active(key: RateKey): SharedRateEntry | undefined
  /** The entry of a pace that is used now: the one that is in use, or this one from now on. */
  use(entry: SharedRateEntry): SharedRateEntry
  /** Something is to be decided or written of it: soon, together with what comes in the same moment. */
  press(entry: SharedRateEntry): void
}

/** A pace of the cluster, for whoever goes by it. It has an entry once it is used. */
export class SharedRateHandle implements RateStateHandle {
  readonly #services: SharedRateDeps
  readonly #key: RateKey
  readonly #row: RateLimits
  readonly #first: RateState
  /** The last that was in use: what is stored may have changed since. */
  #last: SharedRateEntry | null = null

  constructor(services: SharedRateDeps, key: RateKey, row: RateLimits) {
    this.#services = services
    this.#key = key
    this.#row = row
    this.#first = newState(row)
  }

  get state(): RateState {
    const active = this.#services.active(this.#key)
    if (active !== undefined) return active.state
    if (this.#last === null) return this.#first
    const { state } = this.#last
    const now = this.#services.now()
    // Others may have been let in by now: that is looked at.
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
      const onAbort = () => {
        entry.cancel(request)
        resolve(null)
      }
      const request = {
        single,
        decide: (isGranted: boolean) => {
          signal.removeEventListener('abort', onAbort)
          if (!isGranted) return resolve(null)
          const end = this.#endOf(entry)
          // It was on its way when nobody wanted it any more.
          if (signal.aborted) end()
          else resolve(end)
        },
        fail: (error: unknown) => {
          signal.removeEventListener('abort', onAbort)
          reject(error)
        },
      }
      signal.addEventListener('abort', onAbort, { once: true })
      entry.request(request)
      this.#services.press(entry)
    })
  }

  change(change: RateChange): void {
    const entry = this.#use()
    entry.change(change, this.#services.now(), true)
    this.#services.press(entry)
  }

  note(change: RateNote): void {
    this.#use().change(change, this.#services.now(), false)
  }

  watch(call: () => void, single: boolean): () => void {
    return this.#use().watch(call, single, this.#services.now())
  }

  #endOf(entry: SharedRateEntry): PermitEnd {
    return () => {
      entry.end()
      this.#services.press(entry)
    }
  }

  #use(): SharedRateEntry {
    this.#last = this.#services.use(
      this.#last ?? new SharedRateEntry(this.#key, this.#row, this.#services.ticketMs),
    )
    return this.#last
  }
}

/** A pace as the key of a map; the name of an egress has no line break. */
export const textOf = ({ operator, egress }: RateKey) => `${egress}\n${operator}`

/** The operators that refuse some egress, whoever asks by it. */
export class SharedBlocks {
  readonly #known = new Map<string, RateVersion & { readonly refusal: BlockedState }>()

  /** What a row says by now. */
  note({ operator, egress, version, stored }: RateRecord): void {
    const key = { operator, egress }
    const { refusal } = stored.state
    if (refusal === null) this.#known.delete(textOf(key))
    else this.#known.set(textOf(key), { ...key, version, refusal })
  }

  get(key: RateKey): BlockedState | null {
    return this.#known.get(textOf(key))?.refusal ?? null
  }

  versions(isSought: (key: RateKey) => boolean): RateVersion[] {
    return [...this.#known.values()].filter(isSought)
  }

  /** Those that are over. */
  forget(now: number): void {
    for (const [text, { refusal }] of this.#known)
      if (refusal.until <= now) this.#known.delete(text)
  }
}
