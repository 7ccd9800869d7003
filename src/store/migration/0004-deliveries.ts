import { type Kysely, sql } from 'kysely'

/** What becomes of events: attempts, notices, secrets that are replaced. */
export async function deliveries(db: Kysely<unknown>): Promise<void> {
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
