import { sql } from 'kysely'
import type { Database } from '../db/database.ts'

/** Asks the database something that costs nothing: throws where it cannot be read. */
export async function ping({ db }: Database): Promise<void> {
  await sql`select 1 from kysely_migration limit 1`.execute(db)
}
