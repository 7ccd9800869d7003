import { type Kysely, sql } from 'kysely'
import { type Schema, TABLES } from '../schema.ts'

/**
 * Sets the collation of all text columns to "C", so that texts compare by bytes as in SQLite,
 * whatever the locale of the database: pages continue after the last ID, and need an index in that
 * order. Skips columns that have it already, without locking their tables.
 */
export async function collateBinary(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ table: string; column: string }>`
    select relname as "table", attname as "column"
    from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = cast(current_schema() as regnamespace) and relname in (${sql.join(TABLES)})
      and attnum > 0 and not attisdropped and atttypid = cast('text' as regtype)
      and relkind = 'r' and attcollation <> cast('pg_catalog."C"' as regcollation)`.execute(db)
  for (const { table, column } of rows) {
    const name = sql.ref(column)
    await sql`alter table ${sql.table(table)} alter column ${name} type text collate "C"`.execute(
      db,
    )
  }
}
