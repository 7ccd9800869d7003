import { type Kysely, sql } from 'kysely'

/** Several source addresses. */
export async function egresses(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('item').addColumn('egress', 'text').execute()
  await db.schema.alterTable('item').addColumn('refused_by', 'text').execute()
  // A claim passes over what is not due or another egress's: here it sees that without reading the rows.
  await db.schema.dropIndex('item_routed').execute()
  await db.schema
    .createIndex('item_routed')
    .on('item')
    .columns(['job_id', 'operator', 'domain', 'position', 'due_at', 'egress'])
    .where(sql.ref('state'), '=', 'routed')
    .execute()
  // Few items have an egress of their own; most lists have none.
  await db.schema
    .createIndex('item_bound')
    .on('item')
    .columns(['job_id', 'operator', 'egress', 'domain', 'position', 'due_at'])
    .where(sql.ref('state'), '=', 'routed')
    .where(sql.ref('egress'), 'is not', null)
    .execute()
}
