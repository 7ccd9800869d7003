import { mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { breatheTogether, type Clock, MINUTE } from '../base/clock.ts'
import { messageOf } from '../base/error.ts'
import type { Log } from '../base/log.ts'

/** Requests of one kind by one asker: at most `limit` in `perMs`. */
export type Bucket = { readonly key: string; readonly limit: number; readonly perMs: number }

/** How a bucket stands. */
export type BucketState = {
  readonly limit: number
  readonly remaining: number
  /** Epoch ms. */
  readonly resetAt: number
}

export type Taken = {
  /** Which bucket is used up, the first of them; null: each was charged. */
  readonly refusedBy: number | null
  /** In the order of the buckets, after the charge. */
  readonly states: readonly BucketState[]
  /** Takes the charge of one bucket back; gives how that stands then. */
  giveBack(index: number): BucketState
}

/** Counts requests in windows of fixed length, which begin with their first request. */
export interface LimitStore {
  /** Charges all buckets, or none when one of them is used up. Resolves when the counts outlive the process. */
  take(buckets: readonly Bucket[]): Promise<Taken>
  peek(buckets: readonly Bucket[]): readonly BucketState[]
  close(): void
}

/**
 * Counts in memory, so that they are exact however many ask at once, and writes what changed to `file` once in
 * each turn of the event loop, before anybody of that turn is answered. Windows end by the monotonic clock: a
 * wall clock that is set anew locks nobody out.
 */
export function openLimits(file: string, { clock, log }: Doors): LimitStore {
  const ledger = openLedger(file, log)
  const windows = new Map<string, Window>()
  for (const { key, perMs, used, leftMs } of ledger.load(clock.now())) {
    windows.set(key, { used, perMs, endsAt: clock.ticks() + leftMs })
  }
  const changed = new Set<string>()
  let writing: Promise<void> | null = null
  let sweepAt = clock.ticks() + SWEEP_MS

  function write(): void {
    writing = null
    const [now, ticks] = [clock.now(), clock.ticks()]
    const rows = [...changed].flatMap(key => {
      const window = windows.get(key)
      return window === undefined ? [] : [{ key, ...window, endsAt: now + window.endsAt - ticks }]
    })
    changed.clear()
    ledger.save(rows)
    if (ticks >= sweepAt) sweep(now, ticks)
  }
  function sweep(now: number, ticks: number): void {
    sweepAt = ticks + SWEEP_MS
    for (const [key, { endsAt }] of windows) if (endsAt <= ticks) windows.delete(key)
    ledger.forget(now)
  }
  const usedOf = ({ key }: Bucket, ticks: number) => {
    const window = windows.get(key)
    return window === undefined || window.endsAt <= ticks ? null : window
  }
  const stateOf = (bucket: Bucket, now: number, ticks: number): BucketState => {
    const window = usedOf(bucket, ticks)
    return {
      limit: bucket.limit,
      remaining: Math.max(0, bucket.limit - (window?.used ?? 0)),
      resetAt: now + (window === null ? bucket.perMs : window.endsAt - ticks),
    }
  }
  function charge(bucket: Bucket, ticks: number): Window {
    const { key, perMs } = bucket
    const window = usedOf(bucket, ticks) ?? { used: 0, perMs, endsAt: ticks + perMs }
    window.used++
    windows.set(key, window)
    changed.add(key)
    return window
  }
  const peek = (buckets: readonly Bucket[]) => {
    const [now, ticks] = [clock.now(), clock.ticks()]
    return buckets.map(bucket => stateOf(bucket, now, ticks))
  }
  return {
    peek,
    async take(buckets) {
      const ticks = clock.ticks()
      const full = buckets.findIndex(bucket => (usedOf(bucket, ticks)?.used ?? 0) >= bucket.limit)
      if (full !== -1) return { refusedBy: full, states: peek(buckets), giveBack: nothingToGive }
      const charged = buckets.map(bucket => charge(bucket, ticks))
      const states = peek(buckets)
      writing ??= breatheTogether().then(write)
      await writing
      return {
        ...{ refusedBy: null, states },
        giveBack(index) {
          const [window, bucket] = [charged[index] as Window, buckets[index] as Bucket]
          // Of a window that is over this changes nothing any more.
          window.used--
          changed.add(bucket.key)
          writing ??= breatheTogether().then(write)
          return peek([bucket])[0] as BucketState
        },
      }
    },
    close() {
      write()
      ledger.close()
    },
  }
}

function nothingToGive(): never {
  throw new Error('what was refused was not charged')
}

type Doors = { readonly clock: Clock; readonly log: Log }

/** `endsAt` is in ticks. */
type Window = { used: number; readonly perMs: number; readonly endsAt: number }

/** How often windows that are over are cleared away. */
const SWEEP_MS = MINUTE

type Row = {
  readonly key: string
  readonly used: number
  readonly perMs: number
  readonly endsAt: number
}

/** The file. A power cut may forget what was counted last, the end of the process does not. */
function openLedger(file: string, log: Log) {
  const sqlite = openFile(file, log)
  const begin = sqlite.prepare('begin immediate')
  const commit = sqlite.prepare('commit')
  const upsert = sqlite.prepare(
    `insert into bucket (key, used, per_ms, ends_at) values (?, ?, ?, ?)
     on conflict (key) do update set used = excluded.used, per_ms = excluded.per_ms, ends_at = excluded.ends_at`,
  )
  let failing = false
  return {
    load(now: number): (Row & { leftMs: number })[] {
      const rows = sqlite
        .prepare<[], Row>('select key, used, per_ms as perMs, ends_at as endsAt from bucket')
        .all()
      // A clock set back since would make a window longer than it was meant to be.
      return rows
        .map(row => ({ ...row, leftMs: Math.min(row.endsAt - now, row.perMs) }))
        .filter(({ leftMs }) => leftMs > 0)
    },
    /** Where it cannot be written the counts in memory go on to hold. */
    save(rows: readonly Row[]): void {
      if (!sqlite.open) return
      try {
        begin.run()
        for (const { key, used, perMs, endsAt } of rows) upsert.run(key, used, perMs, endsAt)
        commit.run()
        failing = false
      } catch (error) {
        if (sqlite.inTransaction) sqlite.exec('rollback')
        if (!failing) log.error('limits cannot be written', { file, why: messageOf(error) })
        failing = true
      }
    },
    forget(now: number): void {
      try {
        sqlite.prepare('delete from bucket where ends_at <= ?').run(now)
      } catch (error) {
        log.warn('old limits cannot be cleared away', { file, why: messageOf(error) })
      }
    },
    close: () => void sqlite.close(),
  }
}

function openFile(file: string, log: Log): SqliteDatabase.Database {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  try {
    return prepared(file)
  } catch (error) {
    // It knows nothing but the counts of the last hour: nobody should be kept from starting for these.
    log.warn('the file of limits is damaged and is made anew', { file, why: messageOf(error) })
    for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
    return prepared(file)
  }
}

function prepared(file: string): SqliteDatabase.Database {
  const sqlite = new SqliteDatabase(file, { timeout: LOCK_WAIT_MS })
  try {
    sqlite.pragma('journal_mode = WAL')
    sqlite.pragma('synchronous = OFF')
    sqlite.exec(
      `create table if not exists bucket (key text primary key, used integer not null,
         per_ms integer not null, ends_at integer not null) without rowid`,
    )
    return sqlite
  } catch (error) {
    sqlite.close()
    throw error
  }
}

/** A synchronous binding blocks the event loop while it waits for a lock; nobody else should have one here. */
const LOCK_WAIT_MS = 50
