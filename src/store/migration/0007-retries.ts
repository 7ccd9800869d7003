import { type Kysely, sql } from 'kysely'

/** Items that were accepted and wait for the catch-all test of their domain, and items with a second operator. */
export async function retries(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('item').addColumn('accepted', 'text').execute()
  await db.schema.alterTable('item').addColumn('backup_operator', 'text').execute()
  // Few items have one; while the first operator is paused these alone are claimed.
  await db.schema
    .createIndex('item_backup')
    .on('item')
    .columns(['job_id', 'operator', 'domain', 'position', 'due_at'])
    .where(sql.ref('state'), '=', 'routed')
    .where(sql.ref('backup_operator'), 'is not', null)
    .execute()
}
