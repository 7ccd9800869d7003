import { sql, type Transaction } from 'kysely'
import { Migrator } from 'kysely/migration'
import { isUnknownMigration, MIGRATIONS, migrationSource } from './migrations.ts'
import { collateBinary } from './postgres/collation.ts'
import type { Schema } from './schema.ts'
import { isPostgres } from './sql-dialect.ts'

/**
 * Brings the tables up to date. All in one transaction: of several that start at once one makes them while the others
 * wait, a kill leaves no half of them, and what a newer version made stays as it is.
 */
export async function migrate(trx: Transaction<Schema>): Promise<void> {
  const schema = isPostgres(trx) ? await settleIn(trx) : null
  const provider = { getMigrations: async () => MIGRATIONS }
  const inSchema = schema === null ? {} : { migrationTableSchema: schema }
  const { error } = await new Migrator({ db: trx, provider, ...inSchema }).migrateToLatest()
  if (isUnknownMigration(error) && (await replaceDevelopmentMigrations(trx))) return migrate(trx)
  if (error !== undefined) throw error
  if (isPostgres(trx)) await collateBinary(trx)
}

/**
 * The schema where the tables are that are seen by their bare names, else where they will be. Tables of another program
 * in another schema of the same database are none of ours, whatever their names; and all of ours stand in one schema.
 */
async function settleIn(trx: Transaction<Schema>): Promise<string | null> {
  const { rows } = await sql<{ name: string | null }>`
    select coalesce(
      (select nspname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
        where pg_class.oid = to_regclass('kysely_migration')),
      current_schema()) as name`.execute(trx)
  const name = rows[0]?.name ?? null
  if (name !== null) await sql`set local search_path to ${sql.id(name)}`.execute(trx)
  return name
}

/** Records `0001_initial` in place of the development migrations. False for a database of a newer version. */
async function replaceDevelopmentMigrations(trx: Transaction<Schema>): Promise<boolean> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(trx)
  if (migrationSource(rows.map(({ name }) => name)) === 'newer') return false
  await sql`delete from kysely_migration where name <> '0001_lists'`.execute(trx)
  await sql`update kysely_migration set name = '0001_initial'`.execute(trx)
  return true
}
