import type { Database } from '../../db/database.ts'
import { isConflict } from '../../db/postgres/errors.ts'
import type { RateLimits } from '../../engine/rate-control/limit-table.ts'
import { BLOCK_MS } from '../../engine/rate-control/rules.ts'
import type {
  CurrentBlock,
  RateKey,
  RateStateHandle,
  SharedRateState,
} from '../../engine/rate-control/shared-state.ts'
import { type Clock, SECOND, yieldToEventLoop } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { checkRateTimings, DEFAULT_RATE_TIMINGS, type RateTimings } from './rate-timings.ts'
import { deleteRates, type RateRead, type RateRecord, readRates, writeRates } from './rows.ts'
import type { PendingWrite, SharedRateEntry } from './shared-rate-entry.ts'
import {
  SharedBlocks,
  type SharedRateDeps,
  SharedRateHandle,
  textOf,
} from './shared-rate-handle.ts'

export type SharedRatesDeps = {
  readonly database: Database
  readonly log: Log
  /** The ID that this process has as a member at present; permits are held by it, and void when it is buried. */
  readonly member: () => string
  readonly timings?: RateTimings
}

/** Rounds for which a pace is looked at after it was used. */
const IDLE_MAX = 10
/** Paces that are written together. */
const TURN_MAX = 500

/** The paces that all members of a cluster go by, in the table `pace`. */
export interface SharedRates extends SharedRateState {
  /** Tells what is not told yet, and nothing after that. */
  close(): Promise<void>
}

export function openSharedRates(deps: SharedRatesDeps): SharedRates {
  const paces = new RateCoordinator(deps)
  paces.begin()
  return paces
}

class RateCoordinator implements SharedRates, SharedRateDeps {
  readonly #deps: SharedRatesDeps
  readonly #clock: Clock
  readonly #timings: RateTimings
  readonly #server: DatabaseClock
  /** Those that are in use. */
  readonly #active = new Map<string, SharedRateEntry>()
  readonly #refusals = new SharedBlocks()
  readonly #due = new Set<SharedRateEntry>()
  #isMember = true
  #isOffline = false
  #isTurning = false
  #turns: Promise<void> = Promise.resolve()
  #lastLookAt: number | null = null
  #forgotAt: number
  #looking: Loop | null = null

  constructor(deps: SharedRatesDeps) {
    this.#deps = deps
    this.#clock = deps.database.clock
    this.#timings = deps.timings ?? DEFAULT_RATE_TIMINGS
    checkRateTimings(this.#timings)
    this.#server = new DatabaseClock(this.#clock)
    this.#forgotAt = this.#clock.monotonicNow()
  }

  begin(): void {
    const { pollMs, pollSoonMs } = this.#timings
    const isSoon = () => [...this.#active.values()].some(({ hasSingle }) => hasSingle)
    this.#looking = startLoop({
      ...{ name: 'the poll for shared paces', clock: this.#clock, log: this.#deps.log },
      everyMs: () => (isSoon() ? pollSoonMs : pollMs),
      run: () => this.#pollStates(),
      onFailure: error => this.#offline(error),
    })
  }

  open(key: RateKey, row: RateLimits): RateStateHandle {
    return new SharedRateHandle(this, key, row)
  }

  refusal(key: RateKey): CurrentBlock | null {
    const entry = this.#active.get(textOf(key))
    const refusal = entry?.isKnown ? entry.state.refusal : this.#refusals.get(key)
    const leftMs = (refusal?.until ?? 0) - this.#server.now()
    return refusal === null || leftMs <= 0 ? null : { answer: refusal.answer, leftMs }
  }

  async close(): Promise<void> {
    await this.#looking?.stop()
    await this.#turns
    if (this.#dueNow().length > 0) await this.#retryAll()
  }

  // What follows is for the keepers.

  get member(): string {
    return this.#deps.member()
  }

  get ticketMs(): number {
    return this.#timings.ticketMs
  }

  now(): number {
    return this.#server.now()
  }

  use(entry: SharedRateEntry): SharedRateEntry {
    const text = textOf(entry.key)
    const used = this.#active.get(text) ?? entry
    this.#active.set(text, used)
    used.setMember(this.member)
    used.idle = 0
    return used
  }

  active(key: RateKey): SharedRateEntry | undefined {
    return this.#active.get(textOf(key))
  }

  press(entry: SharedRateEntry): void {
    this.#due.add(entry)
    if (!this.#isTurning) this.#turns = this.#retryAll()
  }

  // What is decided and written here.

  /** One turn at a time; what comes meanwhile goes with the next. Ends with the first that fails. */
  async #retryAll(): Promise<void> {
    this.#isTurning = true
    try {
      // Who comes in this moment goes with the first.
      await Promise.resolve()
      for (let due = this.#dueNow(); due.length > 0; due = this.#dueNow()) {
        await this.#turn(due.slice(0, TURN_MAX))
      }
    } catch (error) {
      this.#offline(error)
      for (const entry of this.#dueNow()) entry.fail(error)
    } finally {
      this.#isTurning = false
    }
  }

  async #turn(entries: readonly SharedRateEntry[]): Promise<void> {
    try {
      await this.#decide(entries)
    } catch (error) {
      // What was sent may be stored nevertheless.
      for (const entry of entries) entry.invalidate()
      if (!isConflict(error)) throw error
    }
  }

  /** Those of whom something is to be decided or written; the others are due no more. */
  #dueNow(): SharedRateEntry[] {
    for (const entry of this.#due) if (!entry.isDue(this.#isMember)) this.#due.delete(entry)
    return [...this.#due]
  }

  async #decide(entries: readonly SharedRateEntry[]): Promise<void> {
    const { database } = this.#deps
    const { member } = this
    for (const entry of entries) entry.setMember(member)
    const unread = entries.filter(entry => !entry.isKnown)
    if (unread.length > 0) await this.#read(unread)
    const now = this.#server.now()
    const plans = new Map<SharedRateEntry, PendingWrite>()
    for (const entry of entries) {
      entry.setMember(member)
      const plan = entry.plan(now, this.#isMember)
      if (plan !== null) plans.set(entry, plan)
    }
    if (plans.size === 0) return
    const written = await writeRates(
      database,
      [...plans.values()].map(({ write }) => write),
    )
    const versions = new Map(written.map(row => [textOf(row), row.version]))
    for (const [entry, plan] of plans) {
      const version = versions.get(textOf(entry.key))
      entry.setMember(this.member)
      if (version === undefined) entry.invalidate()
      else this.#written(entry, plan, version)
    }
  }

  #written(entry: SharedRateEntry, plan: PendingWrite, version: number) {
    entry.written(plan, version, this.#clock.monotonicNow(), this.#server.now())
    this.#refusals.note({ ...plan.write, version })
  }

  /** Where there is no row, that is known too. */
  async #read(entries: readonly SharedRateEntry[]): Promise<void> {
    const known = entries.map(({ key }) => ({ ...key, version: 0 }))
    const look = await readRates(this.#deps.database, { known, refusedSince: null })
    this.#heard(look)
    const records = new Map(look.records.map(record => [textOf(record), record]))
    for (const entry of entries) this.#take(entry, records.get(textOf(entry.key)) ?? null, look)
  }

  #take(entry: SharedRateEntry, record: RateRecord | null, { members, now }: RateRead) {
    const { stored = null, version = 0 } = record ?? {}
    entry.read({ stored, version, members, now, at: this.#clock.monotonicNow() })
  }

  #heard({ now, members, records }: RateRead) {
    this.#server.heard(now)
    this.#isMember = members.includes(this.member)
    for (const record of records) this.#refusals.note(record)
  }

  // How it is learned what others changed.

  async #pollStates(): Promise<void> {
    await this.#look()
    await this.#forget()
    this.#back()
  }

  async #look(): Promise<void> {
    const startedAt = this.#clock.monotonicNow()
    const active = [...this.#active.values()]
    const known = active.filter(({ isKnown }) => isKnown)
    const oldest = this.#server.now() - BLOCK_MS
    const look = await readRates(this.#deps.database, {
      known: [
        ...known.map(({ key, version }) => ({ ...key, version })),
        ...this.#refusals.versions(key => !this.#active.has(textOf(key))),
      ],
      refusedSince: Math.floor(Math.max(this.#lastLookAt ?? 0, oldest) - this.#timings.overlapMs),
    })
    this.#lastLookAt = look.now
    this.#heard(look)
    const records = new Map(look.records.map(record => [textOf(record), record]))
    const now = this.#server.now()
    for (const entry of active) {
      entry.setMember(this.member)
      const record = records.get(textOf(entry.key))
      if (record !== undefined && entry.isKnown) this.#take(entry, record, look)
      entry.dropExpiredMembers(look.members, startedAt, now)
    }
    // Those who were called ask, or wait again.
    await yieldToEventLoop()
    for (const entry of active) {
      entry.renewTicket(this.#server.now())
      if (entry.isDue(this.#isMember)) this.press(entry)
      // What could not be told yet is told in a later round.
      const isIdle = ++entry.idle > IDLE_MAX && entry.isQuiet && !this.#due.has(entry)
      if (isIdle) this.#active.delete(textOf(entry.key))
    }
    this.#refusals.forget(now)
  }

  async #forget(): Promise<void> {
    const now = this.#clock.monotonicNow()
    if (now - this.#forgotAt < this.#timings.forgetEveryMs) return
    this.#forgotAt = now
    await deleteRates(this.#deps.database)
  }

  #offline(error: unknown) {
    if (this.#isOffline) return
    this.#isOffline = true
    const sentence = 'paces cannot be shared now: no list opens a connection until they can'
    this.#deps.log.error(sentence, { error: errorMessage(error) })
  }

  #back() {
    if (this.#isOffline) this.#deps.log.info('paces are shared again')
    this.#isOffline = false
  }
}

/** What was heard longer ago may be of a clock that was set since. */
const TRUSTED_MS = 10 * SECOND

/** The database's clock, as far as it is known here: behind it by the way of its answers, and never ahead. */
class DatabaseClock {
  readonly #clock: Clock
  #offset: number
  #heardAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
    this.#offset = clock.now() - clock.monotonicNow()
  }

  /** An answer of the database has just come, with its time, epoch ms. */
  heard(now: number): void {
    const ticks = this.#clock.monotonicNow()
    const offset = now - ticks
    if (offset <= this.#offset && ticks - this.#heardAt < TRUSTED_MS) return
    this.#offset = offset
    this.#heardAt = ticks
  }

  now(): number {
    return this.#clock.monotonicNow() + this.#offset
  }
}
