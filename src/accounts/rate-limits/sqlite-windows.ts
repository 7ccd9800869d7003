import { mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { createLimiter, type LimiterDeps } from './limiter.ts'
import type { Bucket, LimitStore } from './types.ts'
import { settle, usageOf, type Window, type WindowStore, windowAt } from './windows.ts'

/** Limits of one process, on a file of its own. */
export const openLimits = (file: string, doors: LimiterDeps): LimitStore =>
  createLimiter(fileWindows(file, doors), doors)

/**
 * Windows in memory, as no other process counts: where the disk is full, they hold nevertheless. They end by the
 * monotonic clock, so that a wall clock that is set anew locks nobody out. What changed is written to `file`.
 */
function fileWindows(file: string, { clock, log }: LimiterDeps): WindowStore {
  const ledger = openLedger(file, log)
  const windows = new Map<string, Window>()
  const startedAt = clock.monotonicNow()
  for (const { key, perMs, used, leftMs } of ledger.load(clock.now())) {
    windows.set(key, { used, perMs, endsAt: startedAt + leftMs })
  }
  const save = (changed: Iterable<string>) => {
    const offsetMs = clock.now() - clock.monotonicNow()
    const rows = [...changed].map(key => {
      const { used, perMs, endsAt } = windows.get(key) as Window
      return { key, used, perMs, endsAt: offsetMs + endsAt }
    })
    ledger.save(rows)
  }
  const current = (key: string, now: number) => {
    const window = windows.get(key)
    return window === undefined || window.endsAt <= now ? null : window
  }
  const currentOrNew = ({ key, perMs }: Bucket, now: number) =>
    current(key, now) ?? windowAt(undefined, perMs, now)
  return {
    known(key) {
      const now = clock.monotonicNow()
      const window = current(key, now)
      return window && usageOf(window, now)
    },
    async count(requests) {
      const now = clock.monotonicNow()
      const locked = new Map<string, Window>()
      for (const { buckets, back } of requests) {
        for (const bucket of buckets) {
          if (!locked.has(bucket.key)) locked.set(bucket.key, currentOrNew(bucket, now))
        }
        const window = back && current(back.key, now)
        if (back !== null && window !== null) locked.set(back.key, window)
      }
      const { outcomes, changed } = settle(requests, { windows: locked, now })
      for (const key of changed) windows.set(key, locked.get(key) as Window)
      if (changed.size > 0) save(changed)
      return outcomes
    },
    async look(buckets) {
      const now = clock.monotonicNow()
      return buckets.map(bucket => usageOf(currentOrNew(bucket, now), now))
    },
    async sweep() {
      const now = clock.monotonicNow()
      for (const [key, { endsAt }] of windows) if (endsAt <= now) windows.delete(key)
      ledger.forget(clock.now())
    },
    close: () => ledger.close(),
  }
}

/** `endsAt` is epoch ms. */
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
        if (!failing) log.error('limits cannot be written', { file, why: errorMessage(error) })
        failing = true
      }
    },
    forget(now: number): void {
      try {
        sqlite.prepare('delete from bucket where ends_at <= ?').run(now)
      } catch (error) {
        log.warn('old limits cannot be cleared away', { file, why: errorMessage(error) })
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
    log.warn('the file of limits is damaged and is made anew', { file, why: errorMessage(error) })
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
