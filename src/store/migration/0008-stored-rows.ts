import { type Kysely, sql } from 'kysely'

/** How many rows each account stores, and an index of the lists that are not finished. */
export async function storedRows(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('account')
    .addColumn('stored_rows', 'bigint', column => column.notNull().defaultTo(0))
    .execute()
  await sql`
    update account set stored_rows = coalesce((
      select sum(total) from job where account_id = account.id and state <> 'loading'), 0)`.execute(
    db,
  )
  await db.schema
    .createIndex('job_open_list')
    .on('job')
    .column('account_id')
    .where(sql.ref('finished_at'), 'is', null)
    .where(sql.ref('type'), '<>', sql.lit('single'))
    .execute()
}
