import { type Kysely, sql } from 'kysely'
import { type Clock, SECOND } from '../platform/clock.ts'
import type { Reader } from './reader.ts'
import type { Schema } from './schema.ts'
import { serverTime } from './server-time.ts'

/**
 * The clock of everything that waits: epoch ms that advance at the rate of real time and never
 * jump. Due times are stored in it and compared with it, so nothing is due earlier or later because
 * the wall clock was set.
 *
 * A process advances it by its monotonic clock. The database keeps how far it is ahead of the
 * reference clock, by which a process that starts continues it and processes that share the
 * database agree on it. The reference is the wall clock for SQLite and the clock of the server for
 * PostgreSQL.
 *
 * If the reference jumps, the difference changes and the steady clock does not. If it was set back
 * while no process ran, the steady clock continues from the last time that was stored. A jump ahead
 * while no process ran cannot be told from time that has passed, and counts as such.
 */
export class SteadyClock implements Clock {
  readonly #clock: Clock
  readonly #isOwnReference: boolean
  /** Steady time when `#elapsedMs` was 0. */
  #base: number
  /** How far it is ahead of the reference clock. */
  #aheadMs = 0
  /** Uptime minus monotonic time at the start: each counts from an arbitrary point. */
  readonly #uptimeOffset: number
  #suspendedMs = 0

  /** Starts at the time of the wall clock, until `continueFrom` is called. */
  constructor(clock: Clock, dialect: 'sqlite' | 'postgres') {
    this.#clock = clock
    this.#isOwnReference = dialect === 'sqlite'
    this.#uptimeOffset = this.#getUptimeOffset()
    this.#base = clock.now() - this.#elapsedMs
  }

  /** Steady time, epoch ms: the same as the wall clock as long as that was never set. */
  now(): number {
    return Math.floor(this.#base + this.#elapsedMs)
  }

  monotonicNow(): number {
    return this.#clock.monotonicNow()
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.#clock.after(delayMs, callback)
  }

  /** Returns the time of the reference clock at a steady time, epoch ms. For times that are shown. */
  toWallTime(at: number): number {
    const aheadMs = this.#isOwnReference ? this.now() - this.#clock.now() : this.#aheadMs
    // The known difference is constant, so that a time is always shown as the same.
    return at - (Math.abs(aheadMs - this.#aheadMs) > JUMP_MS ? aheadMs : this.#aheadMs)
  }

  /** Continues the clock that the database has. */
  continueFrom({ reference, stored }: ClockReading): void {
    const now = Math.max(reference + (stored?.aheadMs ?? 0), stored?.at ?? 0)
    this.#base = now - this.#elapsedMs
    this.#aheadMs = now - reference
  }

  /** Adds the time for which the machine was suspended, during which a monotonic clock may stop. */
  addSuspension(): void {
    this.#suspendedMs = Math.max(this.#suspendedMs, this.#getUptimeOffset() - this.#uptimeOffset)
  }

  /**
   * Compares the clock with a reading that began at the steady time `since`. Returns how far it
   * then is ahead of the reference clock, and by how much that was set: negative if it was set
   * back, 0 if it did not jump.
   */
  compare({ reference, stored }: ClockReading, since: number): ClockDifference {
    const now = this.now()
    const aheadMs = stored?.aheadMs ?? this.#aheadMs
    const expected = reference + aheadMs
    const isAhead = expected < since - JUMP_MS
    const isBehind = expected > now + JUMP_MS
    // Another process has seen a jump. A clock can stop, as that of a virtual machine that was
    // paused, but cannot run ahead: of several processes, the one with the latest time is right.
    const isChanged = aheadMs !== this.#aheadMs
    if (isAhead || (isBehind && !isChanged)) {
      const correctedMs = since - reference
      return { aheadMs: correctedMs, jumpMs: aheadMs - correctedMs }
    }
    if (expected > now) this.#base += expected - now
    return { aheadMs, jumpMs: 0 }
  }

  /** Records the difference that the database has. */
  setAhead(aheadMs: number): void {
    this.#aheadMs = aheadMs
  }

  get #elapsedMs(): number {
    return this.#clock.monotonicNow() + this.#suspendedMs
  }

  #getUptimeOffset(): number {
    const monotonicMs = this.#clock.monotonicNow()
    return (this.#clock.uptimeMs?.() ?? monotonicMs) - monotonicMs
  }
}

/** A smaller difference is a correction by NTP, or the latency of a database server. */
const JUMP_MS = SECOND

/** Name in the table `setting`. */
export const STEADY_CLOCK = 'steady-clock'

type ClockReading = {
  /** Time of the reference clock, epoch ms. */
  readonly reference: number
  /** Null before it is stored for the first time. */
  readonly stored: StoredClock | null
}

export type StoredClock = {
  /** How far the steady clock is ahead of the reference clock. */
  readonly aheadMs: number
  /** A steady time that has passed. */
  readonly at: number
  /** The stored text, by which a later change is noticed. */
  readonly text: string
}

type ClockDifference = { readonly aheadMs: number; readonly jumpMs: number }

type ClockSource = {
  readonly dialect: 'sqlite' | 'postgres'
  readonly clock: Clock
  readonly db: Kysely<Schema>
  readonly reader: Reader
}

/** Reads the reference clock together with what is stored. */
export async function readClock(source: ClockSource): Promise<ClockReading> {
  const { dialect, clock, db, reader } = source
  const { rows } = await sql<{ now: number; text: string | null }>`
    select ${serverTime(source)} as now,
      (select value from setting where name = ${STEADY_CLOCK}) as text`.execute(
    dialect === 'postgres' ? reader : db,
  )
  const { now = clock.now(), text = null } = rows[0] ?? {}
  if (text === null) return { reference: now, stored: null }
  const { aheadMs, at } = JSON.parse(text) as { aheadMs: number; at: number }
  return { reference: now, stored: { aheadMs, at, text } }
}
