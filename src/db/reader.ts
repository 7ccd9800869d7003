import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/**
 * What a statement that only reads needs: `reader`, `db` and a transaction have it. A statement that
 * writes does not compile with it; on SQLite the connection of `reader` also refuses SQL that writes.
 */
export type Reader = Pick<
  Kysely<Schema>,
  'selectFrom' | 'selectNoFrom' | 'fn' | 'getExecutor' | 'isTransaction'
>
