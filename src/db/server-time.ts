import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Clock } from '../platform/clock.ts'
import type { Schema } from './schema.ts'

type TimeSource = { readonly dialect: 'sqlite' | 'postgres'; readonly clock: Clock }

/**
 * The time of the database's clock as an SQL expression, epoch ms: all machines on a database use
 * this one clock. It advances within a transaction. On SQLite it is the time of the process.
 */
export const serverTime = ({ dialect, clock }: TimeSource) =>
  (dialect === 'postgres'
    ? sql`cast(floor(extract(epoch from clock_timestamp()) * 1000) as bigint)`
    : sql`${clock.now()}`) as RawBuilder<number>

/** Reads the time of the database's clock. Inside a transaction, pass it as `db`. */
export async function serverNow(
  database: TimeSource & { readonly db: Kysely<Schema> },
  db: Kysely<Schema> = database.db,
): Promise<number> {
  if (database.dialect === 'sqlite') return database.clock.now()
  const { rows } = await sql<{ now: number }>`select ${serverTime(database)} as now`.execute(db)
  return rows[0]?.now ?? database.clock.now()
}
