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
  sql,
  type Transaction,
} from 'kysely'
import { Migrator } from 'kysely/migration'
import { LRUCache } from 'lru-cache'
import { breathe, type Clock, sleep } from '../base/clock.ts'
import { EvError, messageOf } from '../base/error.ts'
import { MIGRATIONS } from './migrations.ts'
import type { Schema } from './schema.ts'

/** Where jobs and answers are kept; every function of this folder works on it. */
export type Database = {
  readonly db: Kysely<Schema>
  readonly dialect: 'sqlite'
  readonly clock: Clock
  close(): Promise<void>
}

/** A write transaction, for whoever is not to know SQL. */
export type Trx = Transaction<Schema>

/** A synchronous binding blocks the whole event loop while it waits for a lock; so it waits little, and we retry. */
const LOCK_WAIT_MS = 10
const LOCK_RETRY_MS = 20
/** How long another writer may keep us waiting in all. */
const LOCK_PATIENCE_MS = 30_000
/** Nothing is lost when the journal cannot be emptied, so that is tried less long. */
const JOURNAL_PATIENCE_MS = 2_000

/** Opens the database of a `sqlite:FILE` URL, makes it if it is not there, and brings its tables up to date. */
export async function openDatabase(url: string, clock: Clock): Promise<Database> {
  const file = url.replace(/^sqlite:/, '')
  try {
    const sqlite = await patiently({ clock }, async () => openFile(file))
    const db = new Kysely<Schema>({
      dialect: new ImmediateDialect({ database: preparedOnce(sqlite) }),
    })
    const database: Database = { db, dialect: 'sqlite', clock, close: () => db.destroy() }
    await migrate(database)
    return database
  } catch (error) {
    throw unusable(file, error)
  }
}

/** Runs `work` in one write transaction, durable when it resolves; use only `trx` in it. Another writer is waited for. */
export function write<T>(
  database: Database,
  work: (trx: Transaction<Schema>) => Promise<T>,
): Promise<T> {
  return inTurn(database, () => database.db.transaction().execute(work))
}

/**
 * Runs one writing statement that a power cut may undo without harm: it becomes durable with the next
 * `write`. A commit that waits for the disk costs more than most statements.
 */
export function writeLoosely<T>(
  database: Database,
  statement: (db: Kysely<Schema>) => Promise<T>,
): Promise<T> {
  const run = () =>
    database.db.connection().execute(async db => {
      await sql`pragma synchronous = normal`.execute(db)
      try {
        return await statement(db)
      } finally {
        await sql`pragma synchronous = full`.execute(db)
      }
    })
  return inTurn(database, run)
}

/** From now on what is deleted here is overwritten, not only marked as free. */
export async function secureDelete({ db }: Database): Promise<void> {
  await sql`pragma secure_delete = on`.execute(db)
}

/**
 * Gives the room of what was deleted back to the disk. False when others keep the database busy: what was
 * deleted may then stand in its journal until the last of them ends.
 */
export async function compact(database: Database): Promise<boolean> {
  const { db, clock } = database
  await patiently(database, () => sql`vacuum`.execute(db))
  const giveUpAt = clock.ticks() + JOURNAL_PATIENCE_MS
  for (;;) {
    const { rows } = await sql<{ busy: number }>`pragma wal_checkpoint(truncate)`.execute(db)
    if (rows[0]?.busy === 0) return true
    if (clock.ticks() > giveUpAt) return false
    await sleep(clock, LOCK_RETRY_MS)
  }
}

/** The last in the line of those who write. */
const lines = new WeakMap<Kysely<Schema>, Promise<unknown>>()

/** While another process writes, the first in the line alone asks for the lock: each that asks holds up everybody. */
function inTurn<T>({ db, clock }: Database, run: () => Promise<T>): Promise<T> {
  const giveUpAt = clock.ticks() + LOCK_PATIENCE_MS
  const before = lines.get(db) ?? Promise.resolve()
  const turn = before.then(() => patiently({ clock }, run, giveUpAt))
  // Were many to give up together, others come between.
  lines.set(
    db,
    turn.catch(() => breathe()),
  )
  return turn
}

async function patiently<T>(
  { clock }: Pick<Database, 'clock'>,
  run: () => Promise<T>,
  giveUpAt = clock.ticks() + LOCK_PATIENCE_MS,
): Promise<T> {
  for (;;) {
    try {
      return await run()
    } catch (error) {
      if (!isBusy(error) || clock.ticks() > giveUpAt) throw error
      await sleep(clock, LOCK_RETRY_MS)
    }
  }
}

function openFile(file: string): SqliteDatabase.Database {
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

/** Ours begins with the table of its migrations. */
function isForeign(sqlite: SqliteDatabase.Database): boolean {
  const tables = sqlite.prepare("select name from sqlite_master where type = 'table'").pluck().all()
  return tables.length > 0 && !tables.includes('kysely_migration')
}

/** All in one transaction: two that start at once do not both make the tables, and a kill leaves no half of them. */
async function migrate(database: Database): Promise<void> {
  const provider = { getMigrations: async () => MIGRATIONS }
  try {
    await write(database, async trx => {
      const { error } = await new Migrator({ db: trx, provider }).migrateToLatest()
      if (error !== undefined) throw error
    })
  } catch (error) {
    await database.close()
    throw error
  }
}

function unusable(file: string, cause: unknown): EvError {
  const sentence = `The database ${file} cannot be used: ${messageOf(cause)}. ${remedyFor(cause)}`
  return new EvError('io', sentence, { cause })
}

function remedyFor(cause: unknown): string {
  if (/previously executed migration/.test(messageOf(cause))) {
    return 'It was written by a newer version of ev: use that version.'
  }
  // It is needed again once that is set right: nobody should move it away.
  if (/^SQLITE_(FULL|IOERR|CANTOPEN|READONLY)/.test(codeOf(cause))) {
    return 'Look whether the disk is full, or may not be written (“ev doctor” tells), or name another place with --data-dir.'
  }
  return 'Name another place with --data-dir, or move the file away if it is damaged.'
}

/** The disk is full or fails, or another writer does not end: what could not be written may be written later. */
export const isOfStorage = (error: unknown) =>
  /^SQLITE_(BUSY|FULL|IOERR|READONLY|CANTOPEN|NOMEM)/.test(codeOf(error))

const isBusy = (error: unknown) => codeOf(error).startsWith('SQLITE_BUSY')

const codeOf = (error: unknown) =>
  error instanceof Error && 'code' in error ? String(error.code) : ''

/** Statements kept prepared; there are about forty, and a few more for lists of odd lengths. */
const STATEMENTS_MAX = 200

/** Kysely prepares every statement anew, which costs more than running it: the same text is prepared once. */
function preparedOnce(sqlite: SqliteDatabase.Database): SqliteDialectDatabase {
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

/** Takes the write lock at BEGIN: a transaction that turned writer midway could not be retried safely. */
class ImmediateDialect extends SqliteDialect {
  readonly #config: SqliteDialectConfig

  constructor(config: SqliteDialectConfig) {
    super(config)
    this.#config = config
  }

  override createDriver() {
    return new ImmediateDriver(this.#config)
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
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'))
  }

  /** Where the disk is full or fails SQLite has rolled back by itself, and says so: that must not hide what was wrong. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await super.rollbackTransaction(connection).catch(() => {})
  }
}
