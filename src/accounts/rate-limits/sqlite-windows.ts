import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { createDirectory } from '../../platform/directory.ts'
import { errorMessage } from '../../platform/error.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { ACCOUNT_LOG } from '../telemetry.ts'
import { createLimiter, type LimiterDeps } from './limiter.ts'
import {
  applyCharges,
  type Bucket,
  type LimitStore,
  toUsage,
  type Window,
  type WindowStore,
  windowAt,
} from './windows.ts'

/** Opens the rate limits of a single process, stored in a file of its own. */
export const openSqliteLimits = (file: string, deps: LimiterDeps): LimitStore =>
  createLimiter(createWindows(file, deps), deps)

/**
 * Keeps windows in memory, because no other process counts them: the limits hold even if the disk
 * is full. They end by the monotonic clock, so a change of the wall clock locks no client out.
 * Changed windows are written to `file`.
 */
function createWindows(file: string, { clock, log }: LimiterDeps): WindowStore {
  const windowFile = openWindowFile(file, log)
  const windows = new Map<string, Window>()
  const startedAt = clock.monotonicNow()
  for (const { key, perMs, used, leftMs } of windowFile.load(clock.now())) {
    windows.set(key, { used, perMs, endsAt: startedAt + leftMs })
  }
  const save = (changed: Iterable<string>) => {
    const offsetMs = clock.now() - clock.monotonicNow()
    const rows = [...changed].map(key => {
      const { used, perMs, endsAt } = windows.get(key) as Window
      return { key, used, perMs, endsAt: offsetMs + endsAt }
    })
    windowFile.save(rows)
  }
  const current = (key: string, now: number) => {
    const window = windows.get(key)
    return window === undefined || window.endsAt <= now ? null : window
  }
  const currentOrNew = ({ key, perMs }: Bucket, now: number) =>
    current(key, now) ?? windowAt(undefined, perMs, now)
  return {
    cached(key) {
      const now = clock.monotonicNow()
      const window = current(key, now)
      return window && toUsage(window, now)
    },
    async count(requests) {
      const now = clock.monotonicNow()
      const locked = new Map<string, Window>()
      for (const { buckets, refund } of requests) {
        for (const bucket of buckets) {
          if (!locked.has(bucket.key)) locked.set(bucket.key, currentOrNew(bucket, now))
        }
        const window = refund && current(refund.key, now)
        if (refund !== null && window !== null) locked.set(refund.key, window)
      }
      const { outcomes, changed } = applyCharges(requests, { windows: locked, now })
      for (const key of changed) windows.set(key, locked.get(key) as Window)
      if (changed.size > 0) save(changed)
      return outcomes
    },
    async read(buckets) {
      const now = clock.monotonicNow()
      return buckets.map(bucket => toUsage(currentOrNew(bucket, now), now))
    },
    async deleteExpired() {
      const now = clock.monotonicNow()
      for (const [key, { endsAt }] of windows) if (endsAt <= now) windows.delete(key)
      windowFile.deleteExpired(clock.now())
    },
    close: () => windowFile.close(),
  }
}

/** `endsAt` is epoch ms. */
type Row = {
  readonly key: string
  readonly used: number
  readonly perMs: number
  readonly endsAt: number
}

/** The file of windows. The latest counts survive the end of the process, but not a power cut. */
function openWindowFile(file: string, log: Log) {
  const sqlite = openFile(file, log)
  const begin = sqlite.prepare('begin immediate')
  const commit = sqlite.prepare('commit')
  const upsert = sqlite.prepare(
    `insert into bucket (key, used, per_ms, ends_at) values (?, ?, ?, ?)
     on conflict (key) do update set used = excluded.used, per_ms = excluded.per_ms, ends_at = excluded.ends_at`,
  )
  let isFailing = false
  return {
    load(now: number): (Row & { leftMs: number })[] {
      const rows = sqlite
        .prepare<[], Row>('select key, used, per_ms as perMs, ends_at as endsAt from bucket')
        .all()
      // If the clock was set back since, the remaining time must not exceed the window.
      return rows
        .map(row => ({ ...row, leftMs: Math.min(row.endsAt - now, row.perMs) }))
        .filter(({ leftMs }) => leftMs > 0)
    },
    /** If the file cannot be written, the counts in memory stay in force. */
    save(rows: readonly Row[]): void {
      if (!sqlite.open) return
      try {
        begin.run()
        for (const { key, used, perMs, endsAt } of rows) upsert.run(key, used, perMs, endsAt)
        commit.run()
        isFailing = false
      } catch (error) {
        if (sqlite.inTransaction) sqlite.exec('rollback')
        if (!isFailing)
          writeLog(log, ACCOUNT_LOG.rateLimitsNotWritten, { file, why: errorMessage(error) })
        isFailing = true
      }
    },
    deleteExpired(now: number): void {
      try {
        sqlite.prepare('delete from bucket where ends_at <= ?').run(now)
      } catch (error) {
        writeLog(log, ACCOUNT_LOG.windowsNotDeleted, {
          file,
          why: errorMessage(error),
        })
      }
    },
    close: () => void sqlite.close(),
  }
}

function openFile(file: string, log: Log): SqliteDatabase.Database {
  createDirectory(dirname(file))
  try {
    return prepareFile(file)
  } catch (error) {
    // The file holds only the counts of the last hour, which are not worth a failed start.
    writeLog(log, ACCOUNT_LOG.rateLimitFileDamaged, { file, why: errorMessage(error) })
    for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
    return prepareFile(file)
  }
}

function prepareFile(file: string): SqliteDatabase.Database {
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

/**
 * better-sqlite3 is synchronous and blocks the event loop while it waits for a lock; no other
 * process should hold one on this file.
 */
const LOCK_WAIT_MS = 50
