import { type Kysely, sql } from 'kysely'

/** Who is signed in to the dashboard, and which accounts are those of whoever runs the service. */
export async function sessions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('session')
    .addColumn('id', 'text', column => column.primaryKey())
    .addColumn('hash', 'text', column => column.notNull().unique())
    .addColumn('key_id', 'text', column => column.notNull())
    .addColumn('account_id', 'text', column => column.notNull())
    .addColumn('created_at', 'bigint', column => column.notNull())
    .addColumn('last_seen_at', 'bigint', column => column.notNull())
    .addColumn('expires_at', 'bigint', column => column.notNull())
    .addColumn('ip', 'text', column => column.notNull())
    .addColumn('agent', 'text', column => column.notNull())
    .execute()
  const on = (name: string, columns: string[]) =>
    db.schema.createIndex(name).on('session').columns(columns).execute()
  await on('session_account', ['account_id', 'last_seen_at'])
  await on('session_key', ['key_id', 'last_seen_at'])
  await on('session_expiry', ['expires_at'])
  await on('session_idle', ['last_seen_at'])
  await addOperator(db)
}

/** The first account is the one that the service made for whoever started it. */
async function addOperator(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('account')
    .addColumn('operator', 'integer', column => column.notNull().defaultTo(0))
    .execute()
  await sql`update account set operator = 1
    where id = (select id from account order by created_at, id limit 1)`.execute(db)
}
