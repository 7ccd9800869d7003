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
import { type Log, writeLog } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { CLUSTER_LOG } from '../telemetry.ts'
import { deleteRates, type RateRead, type RateRecord, readRates, writeRates } from './rows.ts'
import type { PendingWrite, SharedRateEntry } from './shared-rate-entry.ts'
import {
  SharedBlocks,
  type SharedRateDeps,
  SharedRateHandle,
  toMapKey,
} from './shared-rate-handle.ts'
import { checkRateTimings, DEFAULT_RATE_TIMINGS, type RateTimings } from './stored-state.ts'

type SharedRatesDeps = {
  readonly database: Database
  readonly log: Log
  /** Current member ID of this process. Permits belong to it and are void once it has expired. */
  readonly member: () => string
  readonly timings?: RateTimings
}

/** Polls for which an unused entry stays active. */
const IDLE_POLLS_MAX = 10
/** Maximum entries written in one batch. */
const BATCH_MAX = 500

/** The rate states shared by all members of a cluster, in the table `pace`. */
export interface SharedRates extends SharedRateState {
  /** Writes pending changes; later ones are dropped. */
  close(): Promise<void>
}

export function openSharedRates(deps: SharedRatesDeps): SharedRates {
  const rates = new RateCoordinator(deps)
  rates.start()
  return rates
}

class RateCoordinator implements SharedRates, SharedRateDeps {
  readonly #deps: SharedRatesDeps
  readonly #clock: Clock
  readonly #timings: RateTimings
  readonly #server: DatabaseClock
  /** Entries in use, by key. */
  readonly #active = new Map<string, SharedRateEntry>()
  readonly #blocks = new SharedBlocks()
  readonly #due = new Set<SharedRateEntry>()
  #isMember = true
  #isOffline = false
  #isFlushing = false
  #flushing: Promise<void> = Promise.resolve()
  #lastPollAt: number | null = null
  #deletedAt: number
  #pollLoop: Loop | null = null

  constructor(deps: SharedRatesDeps) {
    this.#deps = deps
    this.#clock = deps.database.clock
    this.#timings = deps.timings ?? DEFAULT_RATE_TIMINGS
    checkRateTimings(this.#timings)
    this.#server = new DatabaseClock(this.#clock)
    this.#deletedAt = this.#clock.monotonicNow()
  }

  start(): void {
    const { pollMs, pollSoonMs, pollIdleMs } = this.#timings
    const everyMs = () => {
      if ([...this.#active.values()].some(({ hasSingle }) => hasSingle)) return pollSoonMs
      return this.#active.size === 0 && this.#isMember && !this.#isOffline ? pollIdleMs : pollMs
    }
    this.#pollLoop = startLoop({
      clock: this.#clock,
      everyMs,
      run: () => this.#pollStates(),
      onFailure: error => this.#onUnavailable(error),
    })
  }

  open(key: RateKey, limits: RateLimits): RateStateHandle {
    return new SharedRateHandle(this, key, limits)
  }

  refusal(key: RateKey): CurrentBlock | null {
    const entry = this.#active.get(toMapKey(key))
    const refusal = entry?.isKnown ? entry.state.refusal : this.#blocks.get(key)
    const leftMs = (refusal?.until ?? 0) - this.#server.now()
    return refusal === null || leftMs <= 0 ? null : { answer: refusal.answer, leftMs }
  }

  async close(): Promise<void> {
    await this.#pollLoop?.stop()
    await this.#flushing
    if (this.#dueEntries().length > 0) await this.#flushDue()
  }

  // The methods below implement SharedRateDeps.

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
    const key = toMapKey(entry.key)
    if (this.#active.size === 0) this.#pollLoop?.wake()
    const used = this.#active.get(key) ?? entry
    this.#active.set(key, used)
    used.setMember(this.member)
    used.idle = 0
    return used
  }

  active(key: RateKey): SharedRateEntry | undefined {
    return this.#active.get(toMapKey(key))
  }

  scheduleFlush(entry: SharedRateEntry): void {
    this.#due.add(entry)
    if (!this.#isFlushing) this.#flushing = this.#flushDue()
  }

  /**
   * Processes batches one at a time; entries that become due in that time join the next one. Stops at
   * the first failure.
   */
  async #flushDue(): Promise<void> {
    this.#isFlushing = true
    try {
      // Requests of the same moment join the first batch.
      await Promise.resolve()
      for (let due = this.#dueEntries(); due.length > 0; due = this.#dueEntries()) {
        await this.#flush(due.slice(0, BATCH_MAX))
      }
    } catch (error) {
      this.#onUnavailable(error)
      for (const entry of this.#dueEntries()) entry.fail(error)
    } finally {
      this.#isFlushing = false
    }
  }

  async #flush(entries: readonly SharedRateEntry[]): Promise<void> {
    try {
      await this.#decide(entries)
    } catch (error) {
      // The write may have been committed although it failed.
      for (const entry of entries) entry.invalidate()
      if (!isConflict(error)) throw error
    }
  }

  /** Returns the entries with something to decide or write, and drops the others from the set. */
  #dueEntries(): SharedRateEntry[] {
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
    const versions = new Map(written.map(row => [toMapKey(row), row.version]))
    for (const [entry, plan] of plans) {
      const version = versions.get(toMapKey(entry.key))
      entry.setMember(this.member)
      if (version === undefined) entry.invalidate()
      else this.#written(entry, plan, version)
    }
  }

  #written(entry: SharedRateEntry, plan: PendingWrite, version: number) {
    entry.written(plan, version, this.#clock.monotonicNow(), this.#server.now())
    this.#blocks.note({ ...plan.write, version })
  }

  /** A missing row is recorded too. */
  async #read(entries: readonly SharedRateEntry[]): Promise<void> {
    const known = entries.map(({ key }) => ({ ...key, version: 0 }))
    const result = await readRates(this.#deps.database, { known, refusedSince: null })
    this.#update(result)
    const records = new Map(result.records.map(record => [toMapKey(record), record]))
    for (const entry of entries)
      this.#applyRecord(entry, records.get(toMapKey(entry.key)) ?? null, result)
  }

  #applyRecord(entry: SharedRateEntry, record: RateRecord | null, { members, now }: RateRead) {
    const { stored = null, version = 0 } = record ?? {}
    entry.read({ stored, version, members, now, at: this.#clock.monotonicNow() })
  }

  #update({ now, members, records }: RateRead) {
    this.#server.update(now)
    this.#isMember = members.includes(this.member)
    for (const record of records) this.#blocks.note(record)
  }

  async #pollStates(): Promise<void> {
    await this.#poll()
    await this.#deleteUnused()
    this.#onAvailable()
  }

  async #poll(): Promise<void> {
    const startedAt = this.#clock.monotonicNow()
    const active = [...this.#active.values()]
    const known = active.filter(({ isKnown }) => isKnown)
    const oldest = this.#server.now() - BLOCK_MS
    const result = await readRates(this.#deps.database, {
      known: [
        ...known.map(({ key, version }) => ({ ...key, version })),
        ...this.#blocks.versions(key => !this.#active.has(toMapKey(key))),
      ],
      refusedSince: Math.floor(Math.max(this.#lastPollAt ?? 0, oldest) - this.#timings.overlapMs),
    })
    this.#lastPollAt = result.now
    this.#update(result)
    const records = new Map(result.records.map(record => [toMapKey(record), record]))
    const now = this.#server.now()
    for (const entry of active) {
      entry.setMember(this.member)
      const record = records.get(toMapKey(entry.key))
      if (record !== undefined && entry.isKnown) this.#applyRecord(entry, record, result)
      entry.dropExpiredMembers(result.members, startedAt, now)
    }
    // Lets the notified requests run, which acquire or wait again.
    await yieldToEventLoop()
    for (const entry of active) {
      entry.renewTicket(this.#server.now())
      if (entry.isDue(this.#isMember)) this.scheduleFlush(entry)
      // An entry with unwritten changes stays until a later poll.
      const isIdle = ++entry.idle > IDLE_POLLS_MAX && entry.isQuiet && !this.#due.has(entry)
      if (isIdle) this.#active.delete(toMapKey(entry.key))
    }
    this.#blocks.deleteExpired(now)
  }

  async #deleteUnused(): Promise<void> {
    const now = this.#clock.monotonicNow()
    if (now - this.#deletedAt < this.#timings.deleteEveryMs) return
    this.#deletedAt = now
    await deleteRates(this.#deps.database)
  }

  #onUnavailable(error: unknown) {
    if (this.#isOffline) return
    this.#isOffline = true
    writeLog(this.#deps.log, CLUSTER_LOG.rateLimitsUnavailable, { error: errorMessage(error) })
  }

  #onAvailable() {
    if (this.#isOffline) writeLog(this.#deps.log, CLUSTER_LOG.rateLimitsAvailable)
    this.#isOffline = false
  }
}

/** A reading older than this may be from before a clock change. */
const TRUSTED_MS = 10 * SECOND

/** An estimate of the database's clock: behind it by the latency of its responses, never ahead. */
class DatabaseClock {
  readonly #clock: Clock
  #offset: number
  #updatedAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
    this.#offset = clock.now() - clock.monotonicNow()
  }

  /** Records a time that the database has just returned, epoch ms. */
  update(now: number): void {
    const monotonicMs = this.#clock.monotonicNow()
    const offset = now - monotonicMs
    if (offset <= this.#offset && monotonicMs - this.#updatedAt < TRUSTED_MS) return
    this.#offset = offset
    this.#updatedAt = monotonicMs
  }

  now(): number {
    return this.#clock.monotonicNow() + this.#offset
  }
}
