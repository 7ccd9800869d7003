import { type Kysely, sql } from 'kysely'
import { type Schema, TABLES } from '../schema.ts'

/**
 * Texts of ours compare by their bytes, as in SQLite, whatever language the database was made for: pages go on behind the
 * last ID of the page before, and an index over another order would be no help with that.
 */
export async function collateBinary(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ table: string; column: string }>`
    select table_name as "table", column_name as "column" from information_schema.columns
    where table_schema = current_schema() and data_type = 'text'
      and collation_name is distinct from 'C'
      and table_name in (${sql.join(TABLES)})`.execute(db)
  for (const { table, column } of rows) {
    const name = sql.ref(column)
    await sql`alter table ${sql.table(table)} alter column ${name} type text collate "C"`.execute(
      db,
    )
  }
}
