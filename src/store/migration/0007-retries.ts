import type { Kysely } from 'kysely'

/** Items that were accepted and wait for the catch-all test of their domain. */
export async function retries(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('item').addColumn('accepted', 'text').execute()
}
