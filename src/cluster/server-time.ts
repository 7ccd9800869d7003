import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'

/**
 * The time by the database's clock, epoch ms, inside a statement: machines that share a database go by the one clock
 * that all of them have. It runs on within a transaction. On SQLite it is that of the process.
 */
export const serverTime = ({ dialect, clock }: Pick<Database, 'dialect' | 'clock'>) =>
  (dialect === 'postgres'
    ? sql`cast(floor(extract(epoch from clock_timestamp()) * 1000) as bigint)`
    : sql`${clock.now()}`) as RawBuilder<number>

/** The same, read by itself; `db` is the transaction, for use inside one. */
export async function serverNow(
  database: Pick<Database, 'dialect' | 'clock' | 'db'>,
  db: Kysely<Schema> = database.db,
): Promise<number> {
  if (database.dialect === 'sqlite') return database.clock.now()
  const { rows } = await sql<{ now: number }>`select ${serverTime(database)} as now`.execute(db)
  return rows[0]?.now ?? database.clock.now()
}
