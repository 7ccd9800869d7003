import { type Kysely, sql } from 'kysely'
import { isPostgres } from '../dialect.ts'

/** Accounts, keys, credits, history, events, webhooks. */
export async function service(db: Kysely<unknown>): Promise<void> {
  await addJobColumns(db)
  await db.schema.alterTable('item').addColumn('cells', 'text').execute()
  await indexByOperator(db)
  await db.schema
    .createTable('account')
    .addColumn('id', 'text', column => column.primaryKey())
    .addColumn('name', 'text', column => column.notNull())
    .addColumn('plan', 'text', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .execute()
  await db.schema
    .createTable('api_key')
    .addColumn('id', 'text', column => column.primaryKey())
    .addColumn('account_id', 'text', column => column.notNull())
    .addColumn('name', 'text', column => column.notNull())
    .addColumn('scopes', 'text', column => column.notNull())
    .addColumn('allowed_ips', 'text', column => column.notNull())
    .addColumn('allowed_domains', 'text', column => column.notNull())
    .addColumn('rate_limit_per_minute', 'integer')
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('expires_at', 'bigint')
    .addColumn('last_used_at', 'bigint')
    .addColumn('revoked_at', 'bigint')
    .execute()
  await db.schema.createIndex('api_key_account').on('api_key').column('account_id').execute()
  await db.schema
    .createTable('key_secret')
    .addColumn('hash', 'text', column => column.primaryKey())
    .addColumn('key_id', 'text', column => column.notNull())
    .addColumn('prefix', 'text', column => column.notNull())
    .addColumn('hint', 'text', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('expires_at', 'bigint')
    .execute()
  await db.schema.createIndex('key_secret_key').on('key_secret').column('key_id').execute()
  await db.schema
    .createTable('credit')
    .addColumn('account_id', 'text', column => column.notNull())
    .addColumn('period_start', 'bigint', column => column.notNull())
    .addColumn('used', 'bigint', column => column.notNull())
    .addColumn('held', 'bigint', column => column.notNull())
    .addColumn('warned', 'integer', column => column.notNull())
    .addPrimaryKeyConstraint('credit_key', ['account_id', 'period_start'])
    .addCheckConstraint('credit_counts', sql`used >= 0 and held >= 0`)
    .execute()
  await db.schema
    .createTable('usage')
    .addColumn('account_id', 'text', column => column.notNull())
    .addColumn('key_id', 'text', column => column.notNull())
    .addColumn('day', 'bigint', column => column.notNull())
    .addColumn('class', 'text', column => column.notNull())
    .addColumn('verifications', 'bigint', column => column.notNull())
    .addColumn('cached', 'bigint', column => column.notNull())
    .addColumn('credits', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('usage_key', ['account_id', 'day', 'key_id', 'class'])
    .execute()
  await db.schema
    .createTable('verification')
    .addColumn('id', 'text', column => column.notNull())
    .addColumn('account_id', 'text', column => column.notNull())
    .addColumn('key_id', 'text', column => column.notNull())
    .addColumn('email', 'text', column => column.notNull())
    .addColumn('valid', 'integer', column => column.notNull())
    .addColumn('deliverable', 'integer', column => column.notNull())
    .addColumn('risk_level', 'text', column => column.notNull())
    .addColumn('reason', 'text', column => column.notNull())
    .addColumn('class', 'text', column => column.notNull())
    .addColumn('cached', 'integer', column => column.notNull())
    .addColumn('source', 'text', column => column.notNull())
    .addColumn('job_id', 'text')
    .addColumn('sandbox', 'integer', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    // In the order in which it is read: beside each other on the disk, and written at one end only. An ID by
    // itself is never looked for.
    .addPrimaryKeyConstraint('verification_key', ['account_id', 'sandbox', 'created_at', 'id'])
    .$call(table => (isPostgres(db) ? table : table.modifyEnd(sql`without rowid`)))
    .execute()
  await db.schema
    .createIndex('verification_age')
    .on('verification')
    .column('created_at')
    // PostgreSQL would else look for a page of one account among what is new of all: it goes by this where it is said.
    .$call(index => (isPostgres(db) ? index.where(sql.ref('id'), '<>', '') : index))
    .execute()
  await db.schema
    .createTable('event')
    .addColumn('id', 'text', column => column.primaryKey())
    .addColumn('account_id', 'text', column => column.notNull())
    .addColumn('kind', 'text', column => column.notNull())
    .addColumn('body', 'text', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .execute()
  await db.schema.createIndex('event_age').on('event').column('created_at').execute()
  await db.schema
    .createTable('webhook')
    .addColumn('id', 'text', column => column.primaryKey())
    .addColumn('account_id', 'text', column => column.notNull())
    .addColumn('url', 'text', column => column.notNull())
    .addColumn('events', 'text', column => column.notNull())
    .addColumn('active', 'integer', column => column.notNull())
    .addColumn('description', 'text')
    .addColumn('secret', 'text', column => column.notNull())
    .addColumn('secret_hint', 'text', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('updated_at', 'bigint', column => column.notNull())
    .addColumn('disabled_reason', 'text')
    .execute()
  await db.schema.createIndex('webhook_account').on('webhook').column('account_id').execute()
  await db.schema
    .createTable('delivery')
    .addColumn('id', 'text', column => column.primaryKey())
    .addColumn('event_id', 'text', column => column.notNull())
    .addColumn('webhook_id', 'text', column => column.notNull())
    .addColumn('state', 'text', column => column.notNull())
    .addColumn('attempt', 'integer', column => column.notNull())
    .addColumn('due_at', 'bigint', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .execute()
  await db.schema
    .createIndex('delivery_webhook')
    .on('delivery')
    .columns(['webhook_id', 'created_at'])
    .execute()
  await db.schema
    .createTable('replay')
    .addColumn('key_id', 'text', column => column.notNull())
    .addColumn('idempotency_key', 'text', column => column.notNull())
    .addColumn('fingerprint', 'text', column => column.notNull())
    .addColumn('status', 'integer', column => column.notNull())
    .addColumn('answer', 'text', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('replay_key', ['key_id', 'idempotency_key'])
    .execute()
  await db.schema.createIndex('replay_age').on('replay').column('created_at').execute()
}

async function addJobColumns(db: Kysely<unknown>): Promise<void> {
  const whole = ['account_id', 'key_id', 'name', 'error'] as const
  for (const name of whole) await db.schema.alterTable('job').addColumn(name, 'text').execute()
  await db.schema
    .alterTable('job')
    .addColumn('type', 'text', column => column.notNull().defaultTo('list'))
    .execute()
  for (const name of ['sandbox', 'malformed', 'failed', 'held'] as const) {
    await db.schema
      .alterTable('job')
      .addColumn(name, 'bigint', column => column.notNull().defaultTo(0))
      .execute()
  }
  for (const name of ['started_at', 'credit_period'] as const) {
    await db.schema.alterTable('job').addColumn(name, 'bigint').execute()
  }
  await db.schema
    .createIndex('job_account')
    .on('job')
    .columns(['account_id', 'created_at', 'id'])
    .execute()
}

/** A connection serves all jobs that have items for its operator: they are found by it. */
async function indexByOperator(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('item_routed').execute()
  await db.schema
    .createIndex('item_routed')
    .on('item')
    .columns(['operator', 'job_id', 'domain', 'position', 'due_at', 'egress'])
    .where(sql.ref('state'), '=', 'routed')
    .execute()
}
