import { type Kysely, sql } from 'kysely'

/** The end of a session that was opened with a replaced text of its key. */
export async function sessionGrace(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('session').addColumn('secret_expires_at', 'bigint').execute()
  // Every other session lasts seven days.
  await sql`update session set secret_expires_at = expires_at
    where expires_at < created_at + 604800000`.execute(db)
}
