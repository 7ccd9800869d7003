import { type Kysely, sql } from 'kysely'

/** What several machines know in common: who is there, paces, domains that take everything, limits, settings. */
export async function cluster(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('item').addColumn('holder', 'text').execute()
  await db.schema
    .createIndex('item_holder')
    .on('item')
    .column('holder')
    .where(sql.ref('holder'), 'is not', null)
    .execute()
  await db.schema
    .createIndex('job_open')
    .on('job')
    .columns(['created_at', 'id'])
    .where(sql.ref('finished_at'), 'is', null)
    .execute()
  await db.schema
    .createTable('member')
    .addColumn('id', 'text', column => column.primaryKey())
    .addColumn('role', 'text', column => column.notNull())
    .addColumn('name', 'text', column => column.notNull())
    .addColumn('version', 'text', column => column.notNull())
    .addColumn('egresses', 'text', column => column.notNull())
    .addColumn('joined_at', 'bigint', column => column.notNull())
    .addColumn('seen_at', 'bigint', column => column.notNull())
    .execute()
  await db.schema
    .createTable('hold')
    .addColumn('member_id', 'text', column => column.notNull())
    .addColumn('account_id', 'text', column => column.notNull())
    .addColumn('period_start', 'bigint', column => column.notNull())
    .addColumn('amount', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('hold_key', ['member_id', 'account_id', 'period_start'])
    .execute()
  await db.schema
    .createTable('pace')
    .addColumn('operator', 'text', column => column.notNull())
    .addColumn('egress', 'text', column => column.notNull())
    .addColumn('state', 'text', column => column.notNull())
    .addColumn('changed_at', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('pace_key', ['operator', 'egress'])
    .execute()
  await db.schema.createIndex('pace_age').on('pace').column('changed_at').execute()
  await db.schema
    .createTable('catch_all')
    .addColumn('domain', 'text', column => column.primaryKey())
    .addColumn('catch_all', 'integer', column => column.notNull())
    .addColumn('keep_until', 'bigint', column => column.notNull())
    .execute()
  await db.schema.createIndex('catch_all_expiry').on('catch_all').column('keep_until').execute()
  await db.schema
    .createTable('bucket')
    .addColumn('key', 'text', column => column.primaryKey())
    .addColumn('used', 'bigint', column => column.notNull())
    .addColumn('per_ms', 'bigint', column => column.notNull())
    .addColumn('ends_at', 'bigint', column => column.notNull())
    .execute()
  await db.schema.createIndex('bucket_end').on('bucket').column('ends_at').execute()
  await db.schema
    .createTable('setting')
    .addColumn('name', 'text', column => column.primaryKey())
    .addColumn('value', 'text', column => column.notNull())
    .execute()
}
