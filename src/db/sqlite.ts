import { mkdirSync } from 'node:fs'
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
  SqliteDriver,
} from 'kysely'
import { LRUCache } from 'lru-cache'
import { type Clock, yieldToEventLoop } from '../platform/clock.ts'
import type { Schema } from './schema.ts'

/** A synchronous binding blocks the whole event loop while it waits for a lock; so it waits little, and we retry. */
const LOCK_WAIT_MS = 10

/** For all that is written, and what is read on the way. Throws for a file that is none of ours. */
export function openFile(file: string): SqliteDatabase.Database {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const sqlite = new SqliteDatabase(file, { timeout: LOCK_WAIT_MS })
  try {
    // Before anything is changed in it.
    if (isForeign(sqlite)) throw new Error('it belongs to another program')
    sqlite.pragma('journal_mode = WAL')
    // NORMAL loses acknowledged rows in a power cut; in groups FULL costs next to nothing.
    sqlite.pragma('synchronous = FULL')
    sqlite.pragma('journal_size_limit = 67108864')
    sqlite.pragma('cache_size = -16384')
    sqlite.pragma('temp_store = FILE')
    return sqlite
  } catch (error) {
    sqlite.close()
    throw error
  }
}

/** For reads. Never waits for a writer, as the journal is a WAL. */
export function openReader(file: string): SqliteDatabase.Database {
  const sqlite = new SqliteDatabase(file, { timeout: LOCK_WAIT_MS })
  sqlite.pragma('query_only = on')
  sqlite.pragma('cache_size = -4096')
  return sqlite
}

/** Ours begins with the table of its migrations. */
function isForeign(sqlite: SqliteDatabase.Database): boolean {
  const tables = sqlite.prepare("select name from sqlite_master where type = 'table'").pluck().all()
  return tables.length > 0 && !tables.includes('kysely_migration')
}

/** Statements kept prepared; there are about forty, and a few more for lists of odd lengths. */
const STATEMENTS_MAX = 200

/** Kysely prepares every statement anew, which costs more than running it: the same text is prepared once. */
function withStatementCache(sqlite: SqliteDatabase.Database): SqliteDialectDatabase {
  const statements = new LRUCache<string, SqliteDatabase.Statement>({ max: STATEMENTS_MAX })
  return {
    close: () => void sqlite.close(),
    prepare(text) {
      const known = statements.get(text)
      if (known !== undefined) return known
      const statement = sqlite.prepare(text)
      statements.set(text, statement)
      return statement
    },
  }
}

/** How long queries may follow one another before the event loop turns. */
const CHUNK_MS = 8

/**
 * SQLite answers without waiting, so queries that are asked for one after another run in one breath, for half a second
 * when two hundred conversations want their items: nobody else is heard meanwhile.
 */
export class TimeSlice {
  readonly #clock: Clock
  #startedAt: number | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves when the next query may run. */
  async next(): Promise<void> {
    const now = this.#clock.monotonicNow()
    if (this.#startedAt === null) this.#begin(now)
    else if (now - this.#startedAt > CHUNK_MS) await yieldToEventLoop()
  }

  #begin(now: number) {
    this.#startedAt = now
    void yieldToEventLoop().then(() => {
      this.#startedAt = null
    })
  }
}

/** Queries over a file, or over one that is opened when it is first asked something. */
export function kyselyOver(
  sqlite: SqliteDatabase.Database | (() => SqliteDatabase.Database),
  chunk: TimeSlice,
): Kysely<Schema> {
  const database =
    typeof sqlite === 'function'
      ? async () => withStatementCache(sqlite())
      : withStatementCache(sqlite)
  return new Kysely<Schema>({ dialect: new ImmediateDialect({ database }, chunk) })
}

/** Takes the write lock at BEGIN: a transaction that turned writer midway could not be retried safely. */
class ImmediateDialect extends SqliteDialect {
  readonly #config: SqliteDialectConfig
  readonly #chunk: TimeSlice

  constructor(config: SqliteDialectConfig, chunk: TimeSlice) {
    super(config)
    this.#config = config
    this.#chunk = chunk
  }

  override createDriver() {
    return new ImmediateDriver(this.#config, this.#chunk)
  }

  override createAdapter() {
    return new TransactionalAdapter()
  }
}

/** SQLite does make tables in transactions, which Kysely does not count on. */
class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl() {
    return true
  }
}

class ImmediateDriver extends SqliteDriver {
  readonly #chunk: TimeSlice

  constructor(config: SqliteDialectConfig, chunk: TimeSlice) {
    super(config)
    this.#chunk = chunk
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    await this.#chunk.next()
    return super.acquireConnection()
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  /** Where the disk is full or fails SQLite has rolled back by itself, and says so: that must not hide what was wrong. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await super.rollbackTransaction(connection).catch(() => {})
  }
}
