import { breathe, type Clock } from '../../../base/clock.ts'
import { messageOf } from '../../../base/error.ts'
import type { Log } from '../../../base/log.ts'
import { type Loop, startLoop } from '../../../base/loop.ts'
import { REFUSAL_MS } from '../../../probe/pace/rules.ts'
import type { PaceRow } from '../../../probe/pace.ts'
import type { CurrentRefusal, PaceKeeper, PaceKey, PaceShare } from '../../../probe/pace-share.ts'
import type { Database } from '../../database.ts'
import { isConflict } from '../../postgres/faults.ts'
import type { Entry, Plan } from './entry.ts'
import { type EntryHouse, SharedPace } from './keeper.ts'
import { checkPaceTimings, DEFAULT_PACE_TIMINGS, type PaceTimings } from './pace-timings.ts'
import { Refusals, textOf } from './refusals.ts'
import { changePaces, forgetPaces, lookAtPaces, type PaceLook, type PaceRecord } from './rows.ts'
import { ServerClock } from './server-clock.ts'

export type PacesParts = {
  readonly database: Database
  readonly log: Log
  /** The ID that this process has as a member at present; permits are held by it, and void when it is buried. */
  readonly member: () => string
  readonly timings?: PaceTimings
}

/** Rounds for which a pace is looked at after it was used. */
const IDLE_MAX = 10
/** Paces that are written together. */
const TURN_MAX = 500

/** The paces that all members of a cluster go by, in the table `pace`. */
export interface Paces extends PaceShare {
  /** Tells what is not told yet, and nothing after that. */
  close(): Promise<void>
}

export function openPaces(parts: PacesParts): Paces {
  const paces = new SharedPaces(parts)
  paces.begin()
  return paces
}

class SharedPaces implements Paces, EntryHouse {
  readonly #parts: PacesParts
  readonly #clock: Clock
  readonly #timings: PaceTimings
  readonly #server: ServerClock
  /** Those that are in use. */
  readonly #active = new Map<string, Entry>()
  readonly #refusals = new Refusals()
  readonly #due = new Set<Entry>()
  #isMember = true
  #isAway = false
  #isTurning = false
  #turns: Promise<void> = Promise.resolve()
  #lastLookAt: number | null = null
  #forgotAt: number
  #looking: Loop | null = null

  constructor(parts: PacesParts) {
    this.#parts = parts
    this.#clock = parts.database.clock
    this.#timings = parts.timings ?? DEFAULT_PACE_TIMINGS
    checkPaceTimings(this.#timings)
    this.#server = new ServerClock(this.#clock)
    this.#forgotAt = this.#clock.ticks()
  }

  begin(): void {
    const { lookMs, lookSoonMs } = this.#timings
    const isSoon = () => [...this.#active.values()].some(({ hasSingle }) => hasSingle)
    this.#looking = startLoop({
      ...{ name: 'the poll for shared paces', clock: this.#clock, log: this.#parts.log },
      everyMs: () => (isSoon() ? lookSoonMs : lookMs),
      run: () => this.#lookOn(),
      onFailure: error => this.#away(error),
    })
  }

  open(key: PaceKey, row: PaceRow): PaceKeeper {
    return new SharedPace(this, key, row)
  }

  refusal(key: PaceKey): CurrentRefusal | null {
    const entry = this.#active.get(textOf(key))
    const refusal = entry?.isKnown ? entry.state.refusal : this.#refusals.get(key)
    const leftMs = (refusal?.until ?? 0) - this.#server.now()
    return refusal === null || leftMs <= 0 ? null : { answer: refusal.answer, leftMs }
  }

  async close(): Promise<void> {
    await this.#looking?.stop()
    await this.#turns
    if (this.#dueNow().length > 0) await this.#turnAll()
  }

  // What follows is for the keepers.

  get member(): string {
    return this.#parts.member()
  }

  get ticketMs(): number {
    return this.#timings.ticketMs
  }

  now(): number {
    return this.#server.now()
  }

  use(entry: Entry): Entry {
    const text = textOf(entry.key)
    const used = this.#active.get(text) ?? entry
    this.#active.set(text, used)
    used.become(this.member)
    used.idle = 0
    return used
  }

  active(key: PaceKey): Entry | undefined {
    return this.#active.get(textOf(key))
  }

  press(entry: Entry): void {
    this.#due.add(entry)
    if (!this.#isTurning) this.#turns = this.#turnAll()
  }

  // What is decided and written here.

  /** One turn at a time; what comes meanwhile goes with the next. Ends with the first that fails. */
  async #turnAll(): Promise<void> {
    this.#isTurning = true
    try {
      // Who comes in this moment goes with the first.
      await Promise.resolve()
      for (let due = this.#dueNow(); due.length > 0; due = this.#dueNow()) {
        await this.#turn(due.slice(0, TURN_MAX))
      }
    } catch (error) {
      this.#away(error)
      for (const entry of this.#dueNow()) entry.fail(error)
    } finally {
      this.#isTurning = false
    }
  }

  async #turn(entries: readonly Entry[]): Promise<void> {
    try {
      await this.#decide(entries)
    } catch (error) {
      // What was sent may be stored nevertheless.
      for (const entry of entries) entry.doubt()
      if (!isConflict(error)) throw error
    }
  }

  /** Those of whom something is to be decided or written; the others are due no more. */
  #dueNow(): Entry[] {
    for (const entry of this.#due) if (!entry.isDue(this.#isMember)) this.#due.delete(entry)
    return [...this.#due]
  }

  async #decide(entries: readonly Entry[]): Promise<void> {
    const { database } = this.#parts
    const { member } = this
    for (const entry of entries) entry.become(member)
    const unread = entries.filter(entry => !entry.isKnown)
    if (unread.length > 0) await this.#read(unread)
    const now = this.#server.now()
    const plans = new Map<Entry, Plan>()
    for (const entry of entries) {
      entry.become(member)
      const plan = entry.plan(now, this.#isMember)
      if (plan !== null) plans.set(entry, plan)
    }
    if (plans.size === 0) return
    const written = await changePaces(
      database,
      [...plans.values()].map(({ write }) => write),
    )
    const versions = new Map(written.map(row => [textOf(row), row.version]))
    for (const [entry, plan] of plans) {
      const version = versions.get(textOf(entry.key))
      entry.become(this.member)
      if (version === undefined) entry.doubt()
      else this.#written(entry, plan, version)
    }
  }

  #written(entry: Entry, plan: Plan, version: number) {
    entry.written(plan, version, this.#clock.ticks(), this.#server.now())
    this.#refusals.note({ ...plan.write, version })
  }

  /** Where there is no row, that is known too. */
  async #read(entries: readonly Entry[]): Promise<void> {
    const known = entries.map(({ key }) => ({ ...key, version: 0 }))
    const look = await lookAtPaces(this.#parts.database, { known, refusedSince: null })
    this.#heard(look)
    const records = new Map(look.records.map(record => [textOf(record), record]))
    for (const entry of entries) this.#take(entry, records.get(textOf(entry.key)) ?? null, look)
  }

  #take(entry: Entry, record: PaceRecord | null, { members, now }: PaceLook) {
    const { stored = null, version = 0 } = record ?? {}
    entry.read({ stored, version, members, now, at: this.#clock.ticks() })
  }

  #heard({ now, members, records }: PaceLook) {
    this.#server.heard(now)
    this.#isMember = members.includes(this.member)
    for (const record of records) this.#refusals.note(record)
  }

  // How it is learned what others changed.

  async #lookOn(): Promise<void> {
    await this.#look()
    await this.#forget()
    this.#back()
  }

  async #look(): Promise<void> {
    const begunAt = this.#clock.ticks()
    const active = [...this.#active.values()]
    const known = active.filter(({ isKnown }) => isKnown)
    const oldest = this.#server.now() - REFUSAL_MS
    const look = await lookAtPaces(this.#parts.database, {
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
      entry.become(this.member)
      const record = records.get(textOf(entry.key))
      if (record !== undefined && entry.isKnown) this.#take(entry, record, look)
      entry.bury(look.members, begunAt, now)
    }
    // Those who were called ask, or wait again.
    await breathe()
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
    const now = this.#clock.ticks()
    if (now - this.#forgotAt < this.#timings.forgetEveryMs) return
    this.#forgotAt = now
    await forgetPaces(this.#parts.database)
  }

  #away(error: unknown) {
    if (this.#isAway) return
    this.#isAway = true
    const sentence = 'paces cannot be shared now: no list opens a connection until they can'
    this.#parts.log.error(sentence, { error: messageOf(error) })
  }

  #back() {
    if (this.#isAway) this.#parts.log.info('paces are shared again')
    this.#isAway = false
  }
}
