import { type Kysely, sql, type Transaction } from 'kysely'
import { type Clock, sleep, yieldToEventLoop } from '../platform/clock.ts'
import { retry } from '../platform/retry.ts'
import { codeOf } from './error-code.ts'
import { migrate } from './migrate.ts'
import { ConnectBackoff } from './postgres/connect-backoff.ts'
import { checkEncoding, isConflict, isOutage } from './postgres/errors.ts'
import { kyselyOn, openPool, type PoolOptions } from './postgres/pool.ts'
import { DEFAULT_POOL_TIMINGS, type PoolTimings } from './postgres/pool-timings.ts'
import type { Schema } from './schema.ts'
import { kyselyOver, openFile, openReader, TimeSlice } from './sqlite.ts'
import { unusableFile, unusableServer } from './unusable.ts'

/** Where jobs and answers are kept; every function of this folder works on it. */
export type Database = {
  readonly db: Kysely<Schema>
  /** For reads that somebody waits for: they stand in no line behind what is written. */
  readonly reader: Kysely<Schema>
  /** For what a power cut may undo without harm; on SQLite the same as `db`. */
  readonly isAsync: Kysely<Schema>
  readonly dialect: 'sqlite' | 'postgres'
  readonly clock: Clock
  close(): Promise<void>
}

/** A write transaction, for whoever is not to know SQL. */
export type Trx = Transaction<Schema>

const LOCK_RETRY_MS = 20
/** How long another writer may keep us waiting in all. */
const LOCK_TIMEOUT_MS = 30_000
/** As long as a statement may take on a server. */
const QUEUE_TIMEOUT_MS = 10_000
/** Nothing is lost when the journal cannot be emptied, so that is tried less long. */
const JOURNAL_TIMEOUT_MS = 2_000

/** For a server alone. */
export type DatabaseOptions = {
  readonly timings?: PoolTimings
  /** Connections at once, 5 at least. */
  readonly connections?: number
}

/**
 * Opens the database of a `sqlite:FILE` or `postgres://…` URL and brings its tables up to date. A file is made if it is
 * not there.
 */
export function openDatabase(
  url: string,
  clock: Clock,
  options: DatabaseOptions = {},
): Promise<Database> {
  return isPostgresUrl(url) ? openServer(url, clock, options) : openSqlite(url, clock)
}

/** A server that several machines may share, and not a file. */
export const isPostgresUrl = (url: string) => /^postgres(ql)?:/.test(url)

async function openSqlite(url: string, clock: Clock): Promise<Database> {
  const file = url.replace(/^sqlite:/, '')
  try {
    const sqlite = await retryWhileBusy({ clock }, async () => openFile(file))
    const chunk = new TimeSlice(clock)
    const db = kyselyOver(sqlite, chunk)
    // Once the tables are there.
    const reader = kyselyOver(() => openReader(file), chunk)
    const close = async () => {
      await reader.destroy()
      await db.destroy()
    }
    const database: Database = { db, reader, isAsync: db, dialect: 'sqlite', clock, close }
    return await upToDate(database, database)
  } catch (error) {
    throw unusableFile(file, error)
  }
}

/** Of one process; a server has some hundred for all. */
const CONNECTIONS = 14

async function openServer(
  url: string,
  clock: Clock,
  { timings = DEFAULT_POOL_TIMINGS, connections = CONNECTIONS }: DatabaseOptions,
): Promise<Database> {
  const { writing, reading, asyncCommit } = shareConnections(connections)
  const backoff = new ConnectBackoff(clock, timings)
  const pool = (max: number, options: Partial<PoolOptions> = {}) =>
    kyselyOn(openPool(url, clock, { max, timings, backoff, ...options }))
  const [db, reader, isAsync] = [pool(writing), pool(reading), pool(asyncCommit, { isAsync: true })]
  const close = async () => {
    await Promise.all([db.destroy(), reader.destroy(), isAsync.destroy()])
  }
  const database: Database = { db, reader, isAsync, dialect: 'postgres', clock, close }
  // What moves tables may take its time.
  const patient = pool(1, { statementMs: null })
  try {
    return await upToDate(database, { ...database, db: patient })
  } catch (error) {
    throw unusableServer(url, error)
  } finally {
    await patient.destroy()
  }
}

/** Half of them write; 5 leave two for writing and two for reading, so that others go on beside one that waits. */
function shareConnections(connections: number) {
  const asyncCommit = Math.max(1, Math.floor(connections / 7))
  const reading = Math.ceil((connections * 2) / 7)
  return { asyncCommit, reading, writing: connections - asyncCommit - reading }
}

async function upToDate(database: Database, migrating: Database): Promise<Database> {
  try {
    if (database.dialect === 'postgres') await checkEncoding(migrating.db)
    await write(migrating, migrate)
    return database
  } catch (error) {
    await database.close()
    throw error
  }
}

/**
 * Runs `work` in one write transaction, durable when it resolves; use only `trx` in it. Another writer is waited for: as
 * on SQLite, one such transaction runs at a time, over all machines that share the database.
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
 * The same beside other writers, on PostgreSQL: for what is done often, and itself locks the rows that it goes by, in
 * the same order as others do.
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

/** Any number does that no other program takes for its own locks: “ev” and a few more digits. */
const WRITE_LOCK = 0x6576_0001

/** Transactions that stand in each other's way oftener than this do so for a reason. */
const CONFLICTS_MAX = 10

const withoutConflict = <T>({ clock }: Pick<Database, 'clock'>, run: () => Promise<T>) =>
  retry(run, { clock, isRetryable: isConflict, attemptsMax: CONFLICTS_MAX })

/**
 * Runs one writing statement that a power cut may undo without harm: it becomes durable with the next
 * `write`. A commit that waits for the disk costs more than most statements.
 */
export function writeAsyncCommit<T>(
  database: Database,
  statement: (db: Kysely<Schema>) => Promise<T>,
): Promise<T> {
  if (database.dialect === 'postgres')
    return withoutConflict(database, () => statement(database.isAsync))
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

/** From now on what is deleted here is overwritten, not only marked as free. */
export async function secureDelete({ db, dialect }: Database): Promise<void> {
  if (dialect === 'sqlite') await sql`pragma secure_delete = on`.execute(db)
}

/**
 * Gives the room of what was deleted back to the disk. False when others keep the database busy: what was
 * deleted may then stand in its journal until the last of them ends.
 */
export async function compact(database: Database): Promise<boolean> {
  const { db, clock, dialect } = database
  // PostgreSQL sees to it by itself, and does not stop everybody for it.
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

/** The last in the line of those who write. */
const lines = new WeakMap<Kysely<Schema>, Promise<unknown>>()

/** While another process writes, the first in the line alone asks for the lock: each that asks holds up everybody. */
function serialized<T>({ db, clock }: Database, run: () => Promise<T>): Promise<T> {
  const giveUpAt = clock.monotonicNow() + LOCK_TIMEOUT_MS
  return afterPending(db, () => retryWhileBusy({ clock }, run, giveUpAt))
}

/** On PostgreSQL each that asks takes a connection, and a server that is silent takes its time with each in the line. */
function queued<T>({ db, clock }: Database, run: () => Promise<T>): Promise<T> {
  const giveUpAt = clock.monotonicNow() + QUEUE_TIMEOUT_MS
  return afterPending(db, () => {
    if (clock.monotonicNow() > giveUpAt) throw new WriteQueueTimeout('others wrote for too long')
    return run()
  })
}

class WriteQueueTimeout extends Error {
  /** What PostgreSQL calls a lock that cannot be had in time. */
  readonly code = '55P03'
}

function afterPending<T>(db: Kysely<Schema>, run: () => Promise<T>): Promise<T> {
  const before = lines.get(db) ?? Promise.resolve()
  const turn = before.then(run)
  // Were many to give up together, others come between.
  lines.set(
    db,
    turn.catch(() => yieldToEventLoop()),
  )
  return turn
}

function retryWhileBusy<T>(
  { clock }: Pick<Database, 'clock'>,
  run: () => Promise<T>,
  until = clock.monotonicNow() + LOCK_TIMEOUT_MS,
): Promise<T> {
  return retry(run, { clock, until, isRetryable: isBusy, delayMs: LOCK_RETRY_MS })
}

/** The disk is full or fails, or another writer does not end: what could not be written may be written later. */
export const isStorageError = (error: unknown) =>
  /^SQLITE_(BUSY|FULL|IOERR|READONLY|CANTOPEN|NOMEM)/.test(codeOf(error)) ||
  isOutage(error) ||
  isConflict(error)

const isBusy = (error: unknown) => codeOf(error).startsWith('SQLITE_BUSY')

/**
 * Runs at the end of a use case's transaction, for what must become durable together with its result, such as the answer
 * to an Idempotency-Key. A transaction that is tried again runs it again.
 */
export type BeforeCommit<Result> = (trx: Trx, result: Result) => Promise<void>

/** Runs `work` and then `beforeCommit` in one write transaction; `how` is `writeBeside` where rows are locked by `work`. */
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
