import { type Kysely, sql, type Transaction } from 'kysely'
import { type Clock, sleep, yieldToEventLoop } from '../platform/clock.ts'
import { retry } from '../platform/retry.ts'
import { fileOf, isPostgresUrl } from './database-url.ts'
import { migrate } from './migrate.ts'
import {
  ConnectBackoff,
  DEFAULT_POOL_TIMINGS,
  type PoolTimings,
} from './postgres/connect-backoff.ts'
import { codeOf, isConflict, isOutage } from './postgres/errors.ts'
import type { PoolOptions } from './postgres/pool.ts'
import { checkEncoding, checkPooling } from './postgres/suitability.ts'
import type { Reader } from './reader.ts'
import type { Schema } from './schema.ts'
import { createSqliteKysely, fileGuard, openFile, openReader, TimeSlice } from './sqlite.ts'
import { readClock, SteadyClock } from './steady-clock.ts'
import { unusableFile, unusableServer } from './unusable.ts'

/** A database with its connections. */
export type Database = {
  readonly db: Kysely<Schema>
  /** For reads of requests: they never queue behind writes. */
  readonly reader: Reader
  /** For writes that may be lost in a power cut; on SQLite the same as `db`. */
  readonly asyncDb: Kysely<Schema>
  readonly dialect: 'sqlite' | 'postgres'
  /** Path of the SQLite file; null for a server. */
  readonly file: string | null
  /** The wall clock of this process: for dates that are stored. */
  readonly clock: Clock
  /** For due times. */
  readonly steadyClock: SteadyClock
  close(): Promise<void>
}

/** A write transaction, for modules without SQL. */
export type Trx = Transaction<Schema>

const LOCK_RETRY_MS = 20
/** Total wait for the write lock. */
const LOCK_TIMEOUT_MS = 30_000
/** Total wait in the write queue on PostgreSQL; the same as the statement timeout. */
const QUEUE_TIMEOUT_MS = 10_000
/** Shorter, as nothing is lost if the journal cannot be truncated. */
const JOURNAL_TIMEOUT_MS = 2_000

/** Options for PostgreSQL. */
type DatabaseOptions = {
  readonly timings?: PoolTimings
  /** Maximum number of connections, at least 5. */
  readonly connections?: number
  /** Flag that sets the URL, for errors; `--database` by default. */
  readonly flag?: string | undefined
}

/**
 * Opens the database of a `sqlite:FILE` or `postgres://…` URL and migrates it. Creates the file if
 * it does not exist.
 */
export function openDatabase(
  url: string,
  clock: Clock,
  options: DatabaseOptions = {},
): Promise<Database> {
  return isPostgresUrl(url) ? openServer(url, clock, options) : openSqlite(url, clock)
}

async function openSqlite(url: string, clock: Clock): Promise<Database> {
  const file = fileOf(url)
  try {
    const sqlite = await retryWhileBusy({ clock }, async () => openFile(file))
    const timeSlice = new TimeSlice(clock)
    const checkFile = fileGuard(file)
    const db = createSqliteKysely(sqlite, timeSlice, checkFile)
    // Opened on first use, when the tables exist.
    const reader = createSqliteKysely(() => openReader(file), timeSlice, checkFile)
    const close = async () => {
      await reader.destroy()
      await db.destroy()
    }
    const steadyClock = new SteadyClock(clock, 'sqlite')
    const all = { db, reader, asyncDb: db, dialect: 'sqlite' as const, file, clock, steadyClock }
    const database: Database = { ...all, close }
    return await migrated(database, database)
  } catch (error) {
    throw unusableFile(file, error)
  }
}

/** Per process; a server allows some hundred in total by default. */
const CONNECTIONS = 14

async function openServer(
  url: string,
  clock: Clock,
  { timings = DEFAULT_POOL_TIMINGS, connections = CONNECTIONS, flag }: DatabaseOptions,
): Promise<Database> {
  // Loaded on demand: the driver takes tens of milliseconds, and SQLite does not need it.
  const { createPostgresKysely, openPool } = await import('./postgres/pool.ts')
  const { writing, reading, asyncCommit } = shareConnections(connections)
  const backoff = new ConnectBackoff(clock, timings)
  const pool = (max: number, options: Partial<PoolOptions> = {}) =>
    createPostgresKysely(openPool(url, clock, { max, timings, backoff, ...options }))
  const [db, reader] = [pool(writing), pool(reading)]
  const asyncDb = pool(asyncCommit, { asyncCommit: true })
  const close = async () => {
    await Promise.all([db.destroy(), reader.destroy(), asyncDb.destroy()])
  }
  const steadyClock = new SteadyClock(clock, 'postgres')
  const all = { db, reader, asyncDb, dialect: 'postgres' as const, file: null, clock, steadyClock }
  const database: Database = { ...all, close }
  // Migrations may take longer than the statement timeout.
  const unlimited = pool(1, { statementMs: null })
  try {
    return await migrated(database, { ...database, db: unlimited })
  } catch (error) {
    throw unusableServer(url, error, flag)
  } finally {
    await unlimited.destroy()
  }
}

/**
 * Divides the connections among the pools; half of them write. 5 connections leave two for writes
 * and two for reads, so that one blocked statement does not block all others.
 */
function shareConnections(connections: number) {
  const asyncCommit = Math.max(1, Math.floor(connections / 7))
  const reading = Math.ceil((connections * 2) / 7)
  return { asyncCommit, reading, writing: connections - asyncCommit - reading }
}

async function migrated(database: Database, migrating: Database): Promise<Database> {
  try {
    if (database.dialect === 'postgres') {
      await checkEncoding(migrating.db)
      await checkPooling(migrating.db, database.db)
    }
    await write(migrating, migrate)
    database.steadyClock.continueFrom(await readClock(database))
    return database
  } catch (error) {
    await database.close()
    throw error
  }
}

/**
 * Runs `work` in one write transaction, durable when it resolves; `work` must use only `trx`. Waits
 * for other writers: one such transaction runs at a time across all machines that share the
 * database, as on SQLite.
 */
export function write<T>(
  database: Database,
  work: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  if (database.dialect === 'sqlite') return transaction(database, work)
  const run = () =>
    database.db.transaction().execute(async trx => {
      await sql`select pg_advisory_xact_lock(${sql.lit(WRITE_LOCK)})`.execute(trx)
      return work(trx)
    })
  return queued(database, () => withoutConflict(database, run))
}

/**
 * Runs `work` in a write transaction that on PostgreSQL runs concurrently with other writers. For
 * frequent writes; `work` must lock the rows that it depends on, in the common order.
 */
export function writeConcurrent<T>(
  database: Database,
  work: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return transaction(database, work)
}

function transaction<T>(
  database: Database,
  work: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  const run = () => database.db.transaction().execute(work)
  return database.dialect === 'sqlite' ? serialized(database, run) : withoutConflict(database, run)
}

/** Key of the advisory lock: any number that no other program uses; here "ev" in ASCII plus 1. */
const WRITE_LOCK = 0x6576_0001

/** More conflicts than this in a row are not transient. */
const CONFLICTS_MAX = 10

const withoutConflict = <T>({ clock }: Pick<Database, 'clock'>, run: () => Promise<T>) =>
  retry(run, { clock, isRetryable: isConflict, attemptsMax: CONFLICTS_MAX })

/**
 * Runs one write statement that may be lost in a power cut: it becomes durable with the next
 * `write`. A commit that waits for the disk costs more than most statements.
 */
export function writeAsyncCommit<T>(
  database: Database,
  statement: (db: Kysely<Schema>) => Promise<T>,
): Promise<T> {
  if (database.dialect === 'postgres')
    return withoutConflict(database, () => statement(database.asyncDb))
  const run = () =>
    database.db.connection().execute(async db => {
      await sql`pragma synchronous = normal`.execute(db)
      try {
        return await statement(db)
      } finally {
        await sql`pragma synchronous = full`.execute(db)
      }
    })
  return serialized(database, run)
}

/** Makes SQLite overwrite deleted content instead of only marking it as free. */
export async function secureDelete({ db, dialect }: Database): Promise<void> {
  if (dialect === 'sqlite') await sql`pragma secure_delete = on`.execute(db)
}

/**
 * Returns the space of deleted rows to the file system. Resolves with false if other processes keep
 * the database busy: deleted content may then stay in the journal until the last of them ends.
 */
export async function compact(database: Database): Promise<boolean> {
  const { db, clock, dialect } = database
  // PostgreSQL vacuums automatically, without an exclusive lock.
  if (dialect === 'postgres') return true
  await retryWhileBusy(database, () => sql`vacuum`.execute(db))
  const giveUpAt = clock.monotonicNow() + JOURNAL_TIMEOUT_MS
  for (;;) {
    const { rows } = await sql<{ busy: number }>`pragma wal_checkpoint(truncate)`.execute(db)
    if (rows[0]?.busy === 0) return true
    if (clock.monotonicNow() > giveUpAt) return false
    await sleep(clock, LOCK_RETRY_MS)
  }
}

/** The last queued write of each database. */
const queues = new WeakMap<Kysely<Schema>, Promise<unknown>>()

/**
 * Runs writes one at a time: while another process writes, only the first polls for the lock, as
 * each poll blocks the event loop.
 */
function serialized<T>({ db, clock }: Database, run: () => Promise<T>): Promise<T> {
  const giveUpAt = clock.monotonicNow() + LOCK_TIMEOUT_MS
  return afterPending(db, () => retryWhileBusy({ clock }, run, giveUpAt))
}

/**
 * Runs writes one at a time with a time limit for the whole queue: each waiting write holds a
 * connection on PostgreSQL, and an unresponsive server delays every queued one.
 */
function queued<T>({ db, clock }: Database, run: () => Promise<T>): Promise<T> {
  const giveUpAt = clock.monotonicNow() + QUEUE_TIMEOUT_MS
  return afterPending(db, () => {
    if (clock.monotonicNow() > giveUpAt)
      throw new WriteQueueTimeout('timed out waiting for other writers')
    return run()
  })
}

class WriteQueueTimeout extends Error {
  /** SQLSTATE: lock_not_available. */
  readonly code = '55P03'
}

function afterPending<T>(db: Kysely<Schema>, run: () => Promise<T>): Promise<T> {
  const previous = queues.get(db) ?? Promise.resolve()
  const result = previous.then(run)
  // Yields after a failure, so that many timeouts in a row do not block the event loop.
  queues.set(
    db,
    result.catch(() => yieldToEventLoop()),
  )
  return result
}

function retryWhileBusy<T>(
  { clock }: Pick<Database, 'clock'>,
  run: () => Promise<T>,
  until = clock.monotonicNow() + LOCK_TIMEOUT_MS,
): Promise<T> {
  return retry(run, { clock, until, isRetryable: isBusy, delayMs: LOCK_RETRY_MS })
}

/**
 * Whether a write failed for a transient reason (the disk is full or failing, the server is away,
 * another writer holds the lock) and may succeed later.
 */
export const isStorageError = (error: unknown) =>
  /^SQLITE_(BUSY|FULL|IOERR|READONLY|CANTOPEN|NOMEM)/.test(codeOf(error)) ||
  isOutage(error) ||
  isConflict(error)

const isBusy = (error: unknown) => codeOf(error).startsWith('SQLITE_BUSY')

/**
 * Runs at the end of a use case's transaction, for rows that must be committed together with its
 * result, such as the response stored for an Idempotency-Key. A retried transaction runs it again.
 */
export type BeforeCommit<Result> = (trx: Trx, result: Result) => Promise<void>

/**
 * Runs `work` and then `beforeCommit` in one write transaction; `how` is `writeConcurrent` if
 * `work` locks its rows.
 */
export function writeWith<Result>(
  database: Database,
  work: (trx: Trx) => Promise<Result>,
  beforeCommit: BeforeCommit<Result> = async () => {},
  how: typeof write = write,
): Promise<Result> {
  return how(database, async trx => {
    const result = await work(trx)
    await beforeCommit(trx, result)
    return result
  })
}
