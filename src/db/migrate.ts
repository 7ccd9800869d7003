import { type Kysely, sql, type Transaction } from 'kysely'
import { Migrator } from 'kysely/migration'
import { errorMessage } from '../platform/error.ts'
import { initial } from './initial-schema.ts'
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

type Migrations = Record<string, { up(db: Kysely<unknown>): Promise<void> }>

/** Forward only: a released one is never changed, a new one is added. */
export const MIGRATIONS: Migrations = {
  '0001_initial': { up: initial },
}

/** The migrations of the development versions. All ten make the tables of `0001_initial`. */
export const DEVELOPMENT_MIGRATIONS = [
  ...['0001_lists', '0002_egresses', '0003_service', '0004_deliveries', '0005_sessions'],
  ...['0006_cluster', '0007_retries', '0008_stored_rows', '0009_error_codes', '0010_session_grace'],
]

/** A database that has only the first of the development migrations. */
export class OldDevelopmentDatabase extends Error {
  constructor(recorded: readonly string[]) {
    super(
      `a development version of ev made it, with migrations up to ${[...recorded].sort().at(-1)}; ` +
        `ev takes over only databases with all up to ${DEVELOPMENT_MIGRATIONS.at(-1)}`,
    )
  }
}

/**
 * The version of ev that ran the recorded migrations. `development`: all of the development versions. Throws
 * OldDevelopmentDatabase when some of them are missing.
 */
export function migrationSource(recorded: readonly string[]): 'known' | 'development' | 'newer' {
  if (recorded.every(name => name in MIGRATIONS)) return 'known'
  if (!recorded.every(name => DEVELOPMENT_MIGRATIONS.includes(name))) return 'newer'
  if (recorded.length < DEVELOPMENT_MIGRATIONS.length) throw new OldDevelopmentDatabase(recorded)
  return 'development'
}

/** Whether Kysely refused a database for a recorded migration that is not in MIGRATIONS. */
export const isUnknownMigration = (error: unknown): boolean =>
  /previously executed migration .* is missing/.test(errorMessage(error))
