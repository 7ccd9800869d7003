import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import {
  CompiledQuery,
  type DatabaseConnection,
  Kysely,
  SqliteAdapter,
  SqliteDialect,
  type SqliteDialectConfig,
  type SqliteDatabase as SqliteDialectDatabase,
  type SqliteStatement as SqliteDialectStatement,
  SqliteDriver,
  sql,
  type Transaction,
} from 'kysely'
import { LRUCache } from 'lru-cache'
import { type Clock, yieldToEventLoop } from '../platform/clock.ts'
import { createDirectory } from '../platform/directory.ts'
import type { Schema } from './schema.ts'

/** The synchronous driver blocks the event loop while it waits for a lock, so waits are short. */
const LOCK_WAIT_MS = 10

/** Opens the connection for writes. Throws if another program owns the file. */
export function openFile(file: string): SqliteDatabase.Database {
  createDirectory(dirname(file))
  return configure(new SqliteDatabase(file, { timeout: LOCK_WAIT_MS }), sqlite => {
    // Checked before the file is changed.
    if (isForeign(sqlite)) throw new Error('it belongs to another program')
    sqlite.pragma('journal_mode = WAL')
    // NORMAL loses acknowledged rows in a power cut; with batched writes FULL costs little.
    sqlite.pragma('synchronous = FULL')
    sqlite.pragma('journal_size_limit = 67108864')
    sqlite.pragma('cache_size = -16384')
    sqlite.pragma('temp_store = FILE')
  })
}

/** Opens the connection for reads. In WAL mode it never waits for a writer. */
export function openReader(file: string): SqliteDatabase.Database {
  return configure(new SqliteDatabase(file, { timeout: LOCK_WAIT_MS }), sqlite => {
    sqlite.pragma('query_only = on')
    sqlite.pragma('cache_size = -4096')
  })
}

/** Closes the connection if it cannot be configured. */
function configure(
  sqlite: SqliteDatabase.Database,
  apply: (sqlite: SqliteDatabase.Database) => void,
): SqliteDatabase.Database {
  try {
    apply(sqlite)
    return sqlite
  } catch (error) {
    sqlite.close()
    throw error
  }
}

/** A database of ev has the table of its migrations. */
function isForeign(sqlite: SqliteDatabase.Database): boolean {
  const tables = sqlite.prepare("select name from sqlite_master where type = 'table'").pluck().all()
  return tables.length > 0 && !tables.includes('kysely_migration')
}

/** Marks a statement that runs once for each row; its only parameter are the rows. */
const EACH = '/* each ? */ '

/**
 * Runs a write statement once for each row of parameters and returns the number of rows changed by
 * each. Costs a fifth of as many statements of the query builder, each with its own promises.
 */
export async function runEach(
  trx: Transaction<Schema>,
  text: string,
  rows: readonly (readonly unknown[])[],
): Promise<number[]> {
  if (rows.length === 0) return []
  const changes: number[] = []
  for (;;) {
    const left = rows.slice(changes.length)
    const statement = sql<{ changes: number }>`/* each ${left} */ ${sql.raw(text)}`
    const done = await statement.execute(trx)
    changes.push(...done.rows.map(row => row.changes))
    if (changes.length === rows.length) return changes
    await yieldToEventLoop()
  }
}

/**
 * Returns a function that throws if the file is no longer at its path: what is written to a file that
 * was removed or replaced is gone when its last process ends. SQLite itself detects this only without
 * a WAL.
 */
export function fileGuard(file: string): () => void {
  const opened = inodeOf(file)
  return () => {
    if (inodeOf(file) !== opened) throw new FileMoved(file)
  }
}

class FileMoved extends Error {
  /** As SQLite names it. */
  readonly code = 'SQLITE_READONLY_DBMOVED'

  constructor(file: string) {
    super(
      `${file} was removed, moved or replaced while ev uses it. Move it back, or stop ev before you replace it`,
    )
  }
}

/** Returns the inode of the file at a path; null if there is none. */
function inodeOf(file: string): number | null {
  try {
    return statSync(file).ino
  } catch {
    return null
  }
}

/** Cached prepared statements; there are about forty, and a few more for varying row counts. */
const STATEMENTS_MAX = 200

/**
 * Caches prepared statements by their text: Kysely prepares every statement each time, which costs
 * more than running it.
 */
function withStatementCache(
  sqlite: SqliteDatabase.Database,
  timeSlice: TimeSlice,
  checkFile: () => void,
): SqliteDialectDatabase {
  const statements = new LRUCache<string, SqliteDialectStatement>({ max: STATEMENTS_MAX })
  return {
    close: () => void sqlite.close(),
    prepare(text) {
      // A transaction that has begun must be able to end.
      if (!sqlite.inTransaction) checkFile()
      const known = statements.get(text)
      if (known !== undefined) return known
      const statement = text.startsWith(EACH)
        ? eachOf(sqlite.prepare(text.slice(EACH.length)), timeSlice)
        : sqlite.prepare(text)
      statements.set(text, statement)
      return statement
    },
  }
}

/**
 * Returns a statement that takes rows of parameters and runs once for each, until the time slice is
 * over: a row of a list may have a megabyte, which each write of the row copies.
 */
const eachOf = (
  statement: SqliteDatabase.Statement,
  timeSlice: TimeSlice,
): SqliteDialectStatement => ({
  reader: true,
  all([rows]) {
    const done: { changes: number }[] = []
    for (const row of rows as unknown[][]) {
      if (done.length > 0 && timeSlice.isOver()) break
      done.push({ changes: statement.run(row).changes })
    }
    return done
  },
  run: () => ({ changes: 0, lastInsertRowid: 0 }),
  iterate: () => [][Symbol.iterator](),
})

/** How long queries may run back to back before the event loop gets a turn. */
const SLICE_MS = 8

/**
 * Limits how long queries block the event loop. SQLite runs synchronously, so consecutive queries
 * never yield: two hundred sessions that claim their items would block for half a second.
 */
export class TimeSlice {
  readonly #clock: Clock
  #startedAt: number | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves when the next query may run. */
  async next(): Promise<void> {
    if (this.isOver()) await yieldToEventLoop()
  }

  /** Returns true if queries have run long enough in this turn of the event loop. */
  isOver(): boolean {
    const now = this.#clock.monotonicNow()
    if (this.#startedAt === null) this.#start(now)
    return now - (this.#startedAt ?? now) > SLICE_MS
  }

  #start(now: number) {
    this.#startedAt = now
    void yieldToEventLoop().then(() => {
      this.#startedAt = null
    })
  }
}

/**
 * Returns a query builder for a file; a function opens the file on the first query. `checkFile` throws
 * if the file must not be used any more.
 */
export function createSqliteKysely(
  sqlite: SqliteDatabase.Database | (() => SqliteDatabase.Database),
  timeSlice: TimeSlice,
  checkFile: () => void = () => {},
): Kysely<Schema> {
  const database =
    typeof sqlite === 'function'
      ? async () => withStatementCache(sqlite(), timeSlice, checkFile)
      : withStatementCache(sqlite, timeSlice, checkFile)
  return new Kysely<Schema>({ dialect: new ImmediateDialect({ database }, timeSlice) })
}

/**
 * Acquires the write lock at BEGIN: a transaction that becomes a writer midway fails with
 * SQLITE_BUSY without waiting, and could not be retried safely.
 */
class ImmediateDialect extends SqliteDialect {
  readonly #config: SqliteDialectConfig
  readonly #timeSlice: TimeSlice

  constructor(config: SqliteDialectConfig, timeSlice: TimeSlice) {
    super(config)
    this.#config = config
    this.#timeSlice = timeSlice
  }

  override createDriver() {
    return new ImmediateDriver(this.#config, this.#timeSlice)
  }

  override createAdapter() {
    return new TransactionalAdapter()
  }
}

/** SQLite supports transactional DDL, which Kysely does not assume. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl() {
    return true
  }
}

class ImmediateDriver extends SqliteDriver {
  readonly #timeSlice: TimeSlice

  constructor(config: SqliteDialectConfig, timeSlice: TimeSlice) {
    super(config)
    this.#timeSlice = timeSlice
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    await this.#timeSlice.next()
    return super.acquireConnection()
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  /**
   * After a full or failing disk SQLite has already rolled back, so ROLLBACK fails; its error must
   * not replace the original one.
   */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await super.rollbackTransaction(connection).catch(() => {})
  }
}
