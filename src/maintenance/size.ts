import { sql } from 'kysely'
import type { Database } from '../db/database.ts'

/** How much room the database takes on the disk of its server, bytes; null where it is a file of this machine. */
export async function bytesOnServer(database: Database): Promise<number | null> {
  if (database.dialect === 'sqlite') return null
  const { rows } = await sql<{
    bytes: number
  }>`select pg_database_size(current_database()) as bytes`.execute(database.reader)
  return rows[0]?.bytes ?? null
}
