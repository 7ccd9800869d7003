import SqliteDatabase from 'better-sqlite3'
import { sql } from 'kysely'
import type { Database } from '../db/database.ts'
import { fileOf } from '../db/database-url.ts'
import { migrationSource } from '../db/migrate.ts'
import { pathExists } from '../platform/directory.ts'
import { errorMessage } from '../platform/error.ts'

/** State of a SQLite database file. */
type DatabaseInfo =
  | { readonly kind: 'absent' | 'usable' | 'newer'; readonly file: string }
  | { readonly kind: 'unusable'; readonly file: string; readonly why: string }

/** Inspects the database of a `sqlite:FILE` URL without creating or migrating it. */
export function inspectDatabase(url: string): DatabaseInfo {
  const file = fileOf(url)
  try {
    if (!pathExists(file)) return { kind: 'absent', file }
    const sqlite = new SqliteDatabase(file, { readonly: true, timeout: LOCK_WAIT_MS })
    try {
      return inspectTables(sqlite, file)
    } finally {
      sqlite.close()
    }
  } catch (error) {
    return { kind: 'unusable', file, why: errorMessage(error) }
  }
}

/** Writers hold their lock for less. */
const LOCK_WAIT_MS = 500

function inspectTables(sqlite: SqliteDatabase.Database, file: string): DatabaseInfo {
  const tables = sqlite.prepare("select name from sqlite_master where type = 'table'").pluck().all()
  if (tables.length === 0) return { kind: 'usable', file }
  if (!tables.includes('kysely_migration')) {
    return { kind: 'unusable', file, why: 'it belongs to another program' }
  }
  const recorded = sqlite.prepare('select name from kysely_migration').pluck().all() as string[]
  return { kind: migrationSource(recorded) === 'newer' ? 'newer' : 'usable', file }
}

/** Runs a cheap query; throws if the database cannot be read. */
export async function ping({ db }: Database): Promise<void> {
  await sql`select 1 from kysely_migration limit 1`.execute(db)
}

/** Returns the size of a PostgreSQL database, bytes; null for SQLite. */
export async function bytesOnServer(database: Database): Promise<number | null> {
  if (database.dialect === 'sqlite') return null
  const { rows } = await sql<{
    bytes: number
  }>`select pg_database_size(current_database()) as bytes`.execute(database.reader)
  return rows[0]?.bytes ?? null
}
