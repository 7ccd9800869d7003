import { type Kysely, sql } from 'kysely'

/** Lists of the command line, their items, and remembered answers. */
export async function lists(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('job')
    .addColumn('id', 'text', column => column.primaryKey())
    .addColumn('state', 'text', column => column.notNull())
    .addColumn('source_key', 'text', column => column.notNull())
    .addColumn('source', 'text', column => column.notNull())
    .addColumn('total', 'bigint', column => column.notNull())
    .addColumn('done', 'bigint', column => column.notNull())
    .addColumn('duplicates', 'bigint', column => column.notNull())
    .addColumn('deliverable', 'bigint', column => column.notNull())
    .addColumn('risky', 'bigint', column => column.notNull())
    .addColumn('undeliverable', 'bigint', column => column.notNull())
    .addColumn('unknown', 'bigint', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('finished_at', 'bigint')
    .addColumn('written_at', 'bigint')
    .addCheckConstraint('job_done', sql`done <= total`)
    .addCheckConstraint(
      'job_finished',
      sql`(finished_at is null) = (state in ('loading', 'queued', 'processing'))`,
    )
    .execute()
  await db.schema
    .createIndex('job_source')
    .on('job')
    .columns(['source_key', 'created_at'])
    .execute()
  await db.schema
    .createTable('item')
    .addColumn('job_id', 'text', column => column.notNull())
    .addColumn('position', 'bigint', column => column.notNull())
    .addColumn('text', 'text', column => column.notNull())
    .addColumn('dedupe_key', 'text', column => column.notNull())
    .addColumn('state', 'text', column => column.notNull())
    .addColumn('same_as', 'bigint')
    .addColumn('copies', 'bigint', column => column.notNull())
    .addColumn('operator', 'text')
    .addColumn('domain', 'text')
    .addColumn('route', 'text')
    .addColumn('due_at', 'bigint', column => column.notNull())
    .addColumn('tries', 'integer', column => column.notNull())
    .addColumn('ready_at', 'bigint')
    .addColumn('result', 'text')
    .addColumn('class', 'text')
    .addPrimaryKeyConstraint('item_key', ['job_id', 'position'])
    .addCheckConstraint('item_result', sql`(result is not null) = (state = 'done')`)
    .addCheckConstraint('item_same', sql`(same_as is not null) = (state = 'same')`)
    .execute()
  // Partial indexes: each holds only what its claim looks for, and empties as the work goes on.
  await db.schema
    .createIndex('item_queued')
    .on('item')
    .columns(['job_id', 'position'])
    .where(sql.ref('state'), '=', 'queued')
    .execute()
  await db.schema
    .createIndex('item_routed')
    .on('item')
    .columns(['job_id', 'operator', 'domain', 'position'])
    .where(sql.ref('state'), '=', 'routed')
    .execute()
  await db.schema
    .createIndex('item_probing')
    .on('item')
    .columns(['job_id', 'position'])
    .where(sql.ref('state'), '=', 'probing')
    .execute()
  await db.schema
    .createTable('answer')
    .addColumn('address_key', 'text', column => column.primaryKey())
    .addColumn('remembered', 'text', column => column.notNull())
    .addColumn('keep_until', 'bigint', column => column.notNull())
    .execute()
  await db.schema.createIndex('answer_expiry').on('answer').column('keep_until').execute()
}
