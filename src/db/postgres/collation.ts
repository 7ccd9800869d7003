import { type Kysely, sql } from 'kysely'
import { type Schema, TABLES } from '../schema.ts'

/**
 * Texts of ours compare by their bytes, as in SQLite, whatever language the database was made for: pages go on behind the
 * last ID of the page before, and an index over another order would be no help with that. Columns that do so already are
 * not touched, and nothing is locked for them.
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
