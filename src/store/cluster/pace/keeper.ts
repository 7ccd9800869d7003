import {
  isRefused,
  newState,
  type PaceChange,
  type PaceNote,
  type PaceState,
} from '../../../probe/pace/rules.ts'
import type { PaceRow } from '../../../probe/pace.ts'
import type { End, PaceKeeper, PaceKey } from '../../../probe/pace-share.ts'
import { Entry } from './entry.ts'

/** Where the entries are that are in use. */
export interface EntryHouse {
  /** The ID that this process has as a member at present. */
  readonly member: string
  /** How long a ticket holds. */
  readonly ticketMs: number
  now(): number
  active(key: PaceKey): Entry | undefined
  /** The entry of a pace that is used now: the one that is in use, or this one from now on. */
  use(entry: Entry): Entry
  /** Something is to be decided or written of it: soon, together with what comes in the same moment. */
  press(entry: Entry): void
}

/** A pace of the cluster, for whoever goes by it. It has an entry once it is used. */
export class SharedPace implements PaceKeeper {
  readonly #house: EntryHouse
  readonly #key: PaceKey
  readonly #row: PaceRow
  readonly #first: PaceState
  /** The last that was in use: what is stored may have changed since. */
  #last: Entry | null = null

  constructor(house: EntryHouse, key: PaceKey, row: PaceRow) {
    this.#house = house
    this.#key = key
    this.#row = row
    this.#first = newState(row)
  }

  get state(): PaceState {
    const active = this.#house.active(this.#key)
    if (active !== undefined) return active.state
    if (this.#last === null) return this.#first
    const { state } = this.#last
    const now = this.#house.now()
    // Others may have been let in by now: that is looked at.
    if (isRefused(state, now) || state.pausedUntil > now) this.#use()
    return state
  }

  get sessions(): number {
    return this.#house.active(this.#key)?.sessions ?? 0
  }

  kept(single: boolean): number {
    return this.#house.active(this.#key)?.kept(single, this.#house.now()) ?? 0
  }

  get isSingleWaiting(): boolean {
    return this.#house.active(this.#key)?.isSingleWaiting(this.#house.now()) ?? false
  }

  now(): number {
    return this.#house.now()
  }

  begin(signal: AbortSignal, single: boolean): Promise<End | null> {
    if (signal.aborted) return Promise.resolve(null)
    const entry = this.#use()
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        entry.unwant(want)
        resolve(null)
      }
      const want = {
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
      entry.want(want)
      this.#house.press(entry)
    })
  }

  change(change: PaceChange): void {
    const entry = this.#use()
    entry.change(change, this.#house.now(), true)
    this.#house.press(entry)
  }

  note(change: PaceNote): void {
    this.#use().change(change, this.#house.now(), false)
  }

  watch(call: () => void, single: boolean): () => void {
    return this.#use().watch(call, single, this.#house.now())
  }

  #endOf(entry: Entry): End {
    return () => {
      entry.end()
      this.#house.press(entry)
    }
  }

  #use(): Entry {
    this.#last = this.#house.use(
      this.#last ?? new Entry(this.#key, this.#row, this.#house.ticketMs),
    )
    return this.#last
  }
}
