import { sql } from 'kysely'
import type { Database } from '../db/database.ts'

/** Runs a cheap query; throws if the database cannot be read. */
export async function ping({ db }: Database): Promise<void> {
  await sql`select 1 from kysely_migration limit 1`.execute(db)
}
