import { sql } from 'kysely'
import type { Database } from '../db/database.ts'

/** Returns the size of a PostgreSQL database, bytes; null for SQLite. */
export async function bytesOnServer(database: Database): Promise<number | null> {
  if (database.dialect === 'sqlite') return null
  const { rows } = await sql<{
    bytes: number
  }>`select pg_database_size(current_database()) as bytes`.execute(database.reader)
  return rows[0]?.bytes ?? null
}
