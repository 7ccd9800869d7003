import { type Kysely, sql } from 'kysely'

type Migrations = Record<string, { up(db: Kysely<unknown>): Promise<void> }>

/** Forward only: a released one is never changed, a new one is added. */
export const MIGRATIONS: Migrations = {
  '0001_lists': {
    async up(db) {
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
    },
  },
  '0002_egresses': {
    async up(db) {
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
    },
  },
  '0003_service': {
    async up(db) {
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
        .modifyEnd(sql`without rowid`)
        .execute()
      await db.schema
        .createIndex('verification_age')
        .on('verification')
        .column('created_at')
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
    },
  },
  '0004_deliveries': {
    async up(db) {
      await db.schema.alterTable('account').addColumn('email', 'text').execute()
      await addWebhookColumns(db)
      await addDeliveryColumns(db)
      await db.schema
        .createTable('attempt')
        .addColumn('delivery_id', 'text', column => column.notNull())
        .addColumn('number', 'integer', column => column.notNull())
        .addColumn('trigger', 'text', column => column.notNull())
        .addColumn('url', 'text', column => column.notNull())
        .addColumn('started_at', 'bigint', column => column.notNull())
        .addColumn('duration_ms', 'integer', column => column.notNull())
        .addColumn('status_code', 'integer')
        .addColumn('headers', 'text')
        .addColumn('excerpt', 'text')
        .addColumn('error', 'text')
        .addPrimaryKeyConstraint('attempt_key', ['delivery_id', 'number'])
        .execute()
      await db.schema
        .createTable('notice')
        .addColumn('webhook_id', 'text', column => column.primaryKey())
        .addColumn('account_id', 'text', column => column.notNull())
        .addColumn('failed_events', 'bigint', column => column.notNull())
        .addColumn('last_error', 'text')
        .addColumn('disabled_reason', 'text')
        .addColumn('due_at', 'bigint')
        .addColumn('sent_at', 'bigint')
        .execute()
      await db.schema
        .createIndex('notice_due')
        .on('notice')
        .columns(['due_at', 'webhook_id'])
        .where(sql.ref('due_at'), 'is not', null)
        .execute()
    },
  },
}

async function addWebhookColumns(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('webhook').addColumn('previous_secret', 'text').execute()
  for (const name of ['previous_until', 'failing_since', 'deleted_at'] as const) {
    await db.schema.alterTable('webhook').addColumn(name, 'bigint').execute()
  }
}

async function addDeliveryColumns(db: Kysely<unknown>): Promise<void> {
  for (const [name, fallback] of [
    ['kind', ''],
    ['trigger', 'scheduled'],
  ] as const) {
    await db.schema
      .alterTable('delivery')
      .addColumn(name, 'text', column => column.notNull().defaultTo(fallback))
      .execute()
  }
  for (const name of ['status_code', 'duration_ms'] as const) {
    await db.schema.alterTable('delivery').addColumn(name, 'integer').execute()
  }
  await db.schema.alterTable('delivery').addColumn('error', 'text').execute()
  await db.schema.alterTable('delivery').addColumn('expires_at', 'bigint').execute()
  await sql`update delivery set kind = (select kind from event where event.id = delivery.event_id)
    where exists (select 1 from event where event.id = delivery.event_id)`.execute(db)
  await indexDeliveries(db)
}

async function indexDeliveries(db: Kysely<unknown>): Promise<void> {
  const on = (name: string, columns: string[]) =>
    db.schema.createIndex(name).on('delivery').columns(columns)
  await db.schema.dropIndex('delivery_webhook').execute()
  // The log, all of it or of one state: what is of another kind is passed over without reading the rows.
  await on('delivery_webhook', ['webhook_id', 'created_at', 'id', 'kind']).execute()
  await on('delivery_state', ['webhook_id', 'state', 'created_at', 'id', 'kind']).execute()
  // What is open, in the order in which it is sent. With its state, or SQLite would read the row to see it.
  await on('delivery_due', ['webhook_id', 'due_at', 'created_at', 'id', 'state'])
    .where(sql.ref('state'), 'in', ['pending', 'retry_scheduled'])
    .execute()
  await on('delivery_event', ['event_id']).execute()
  await on('delivery_expiry', ['expires_at']).where(sql.ref('expires_at'), 'is not', null).execute()
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
