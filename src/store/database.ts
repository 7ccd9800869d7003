import { type Kysely, sql, type Transaction } from 'kysely'
import { Migrator } from 'kysely/migration'
import { breathe, type Clock, sleep } from '../base/clock.ts'
import { EvError, messageOf } from '../base/error.ts'
import { MIGRATIONS } from './migrations.ts'
import type { Schema } from './schema.ts'
import { kyselyOver, openFile, openReader, Stretch } from './sqlite.ts'

/** Where jobs and answers are kept; every function of this folder works on it. */
export type Database = {
  readonly db: Kysely<Schema>
  /** For reads that somebody waits for: they stand in no line behind what is written. */
  readonly reader: Kysely<Schema>
  readonly dialect: 'sqlite'
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

/** Opens the database of a `sqlite:FILE` URL, makes it if it is not there, and brings its tables up to date. */
export async function openDatabase(url: string, clock: Clock): Promise<Database> {
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
    const database: Database = { db, reader, dialect: 'sqlite', clock, close }
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
