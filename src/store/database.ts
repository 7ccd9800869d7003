import { type Kysely, sql, type Transaction } from 'kysely'
import { Migrator } from 'kysely/migration'
import { breathe, type Clock, sleep } from '../base/clock.ts'
import { EvError, messageOf } from '../base/error.ts'
import { codeOf } from './fault-code.ts'
import { MIGRATIONS } from './migrations.ts'
import { collateBinary } from './postgres/collation.ts'
import { isConflict, isOutage } from './postgres/faults.ts'
import { kyselyOn, openPool } from './postgres/pool.ts'
import type { Schema } from './schema.ts'
import { kyselyOver, openFile, openReader, Stretch } from './sqlite.ts'

/** Where jobs and answers are kept; every function of this folder works on it. */
export type Database = {
  readonly db: Kysely<Schema>
  /** For reads that somebody waits for: they stand in no line behind what is written. */
  readonly reader: Kysely<Schema>
  /** For what a power cut may undo without harm; on SQLite the same as `db`. */
  readonly loose: Kysely<Schema>
  readonly dialect: 'sqlite' | 'postgres'
  readonly clock: Clock
  close(): Promise<void>
}

/** A write transaction, for whoever is not to know SQL. */
export type Trx = Transaction<Schema>

const LOCK_RETRY_MS = 20
/** How long another writer may keep us waiting in all. */
const LOCK_PATIENCE_MS = 30_000
/** Nothing is lost when the journal cannot be emptied, so that is tried less long. */
const JOURNAL_PATIENCE_MS = 2_000

/**
 * Opens the database of a `sqlite:FILE` or `postgres://…` URL and brings its tables up to date. A file is made if it is
 * not there.
 */
export function openDatabase(url: string, clock: Clock): Promise<Database> {
  return isPostgresUrl(url) ? openServer(url, clock) : openSqlite(url, clock)
}

/** A server that several machines may share, and not a file. */
export const isPostgresUrl = (url: string) => /^postgres(ql)?:/.test(url)

async function openSqlite(url: string, clock: Clock): Promise<Database> {
  const file = url.replace(/^sqlite:/, '')
  try {
    const sqlite = await patiently({ clock }, async () => openFile(file))
    const stretch = new Stretch(clock)
    const db = kyselyOver(sqlite, stretch)
    // Once the tables are there.
    const reader = kyselyOver(() => openReader(file), stretch)
    const close = async () => {
      await reader.destroy()
      await db.destroy()
    }
    const database: Database = { db, reader, loose: db, dialect: 'sqlite', clock, close }
    await migrate(database)
    return database
  } catch (error) {
    throw unusable(file, error)
  }
}

/** Connections of one process at the most; a server has some hundred for all. */
const CONNECTIONS = { db: 8, reader: 4, loose: 2 } as const

async function openServer(url: string, clock: Clock): Promise<Database> {
  const pools = {
    db: openPool(url, { max: CONNECTIONS.db }),
    reader: openPool(url, { max: CONNECTIONS.reader }),
    loose: openPool(url, { max: CONNECTIONS.loose, loose: true }),
  }
  const [db, reader, loose] = [kyselyOn(pools.db), kyselyOn(pools.reader), kyselyOn(pools.loose)]
  const close = async () => {
    await Promise.all([db.destroy(), reader.destroy(), loose.destroy()])
  }
  const database: Database = { db, reader, loose, dialect: 'postgres', clock, close }
  try {
    await migrate(database)
    return database
  } catch (error) {
    throw unusableServer(url, error)
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
  return transaction(database, async trx => {
    await sql`select pg_advisory_xact_lock(${sql.lit(WRITE_LOCK)})`.execute(trx)
    return work(trx)
  })
}

/**
 * The same beside other writers, on PostgreSQL: for what is done often, and itself locks the rows that it goes by, in
 * the same order as others do.
 */
export function writeBeside<T>(
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
  return database.dialect === 'sqlite' ? inTurn(database, run) : withoutConflict(run)
}

/** Any number does that no other program takes for its own locks: “ev” and a few more digits. */
const WRITE_LOCK = 0x6576_0001

/** Transactions that stand in each other's way oftener than this do so for a reason. */
const CONFLICTS_MAX = 10

async function withoutConflict<T>(run: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await run()
    } catch (error) {
      if (!isConflict(error) || tries === CONFLICTS_MAX) throw error
    }
  }
}

/**
 * Runs one writing statement that a power cut may undo without harm: it becomes durable with the next
 * `write`. A commit that waits for the disk costs more than most statements.
 */
export function writeLoosely<T>(
  database: Database,
  statement: (db: Kysely<Schema>) => Promise<T>,
): Promise<T> {
  if (database.dialect === 'postgres') return withoutConflict(() => statement(database.loose))
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

/** All in one transaction: two that start at once do not both make the tables, and a kill leaves no half of them. */
async function migrate(database: Database): Promise<void> {
  const provider = { getMigrations: async () => MIGRATIONS }
  try {
    await write(database, async trx => {
      if (database.dialect === 'postgres') await sql`set local statement_timeout = 0`.execute(trx)
      const { error } = await new Migrator({ db: trx, provider }).migrateToLatest()
      if (error !== undefined) throw error
      if (database.dialect === 'postgres') await collateBinary(trx)
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

function unusableServer(url: string, cause: unknown): EvError {
  const place = url.replace(/^([a-z]+:\/\/)[^/]*@/, '$1…@').replace(/\?.*$/, '')
  const remedy = isOutage(cause) ? SERVER_REMEDY : remedyFor(cause)
  const sentence = `The database ${place} cannot be used: ${messageOf(cause)}. ${remedy}`
  return new EvError('io', sentence, { cause })
}

const SERVER_REMEDY =
  'Look whether the server runs, may be reached from here and has connections left, or name another with --database.'

function remedyFor(cause: unknown): string {
  if (/previously executed migration/.test(messageOf(cause))) {
    return 'It was written by a newer version of ev: use that version.'
  }
  // It is needed again once that is set right: nobody should move it away.
  if (/^SQLITE_(FULL|IOERR|CANTOPEN|READONLY)/.test(codeOf(cause))) {
    return 'Look whether the disk is full, or may not be written (“ev doctor” tells), or name another place with --data-dir.'
  }
  if (/^(28|3D|42501)/.test(codeOf(cause))) {
    return 'Correct the user, the password or the name in --database; the user must be allowed to make tables.'
  }
  return 'Name another place with --data-dir, or move the file away if it is damaged.'
}

/** The disk is full or fails, or another writer does not end: what could not be written may be written later. */
export const isOfStorage = (error: unknown) =>
  /^SQLITE_(BUSY|FULL|IOERR|READONLY|CANTOPEN|NOMEM)/.test(codeOf(error)) ||
  isOutage(error) ||
  isConflict(error)

const isBusy = (error: unknown) => codeOf(error).startsWith('SQLITE_BUSY')
