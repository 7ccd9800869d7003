import type { SelectQueryBuilder } from 'kysely'
import type { Schema } from './schema.ts'

/** Counts the rows that a query finds. */
export async function countRows<Tables extends keyof Schema>(
  query: SelectQueryBuilder<Schema, Tables, object>,
): Promise<number> {
  const { count } = await query.select(eb => eb.fn.countAll().as('count')).executeTakeFirstOrThrow()
  // PostgreSQL returns a bigint as text.
  return Number(count)
}
