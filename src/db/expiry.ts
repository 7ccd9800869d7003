import { sql } from 'kysely'
import type { Trx } from './database.ts'
import { isPostgres } from './sql-dialect.ts'

/**
 * Deletes at most `max` expired rows and returns their number. Several servers may do so at the
 * same time: rows locked by another are skipped until the next run.
 */
export type Expiry = (trx: Trx, before: number, max: number) => Promise<number>

/** Skips locked rows, at the end of a select. Not needed on SQLite, which has one writer. */
export const skipLocked = (trx: Trx, table: string) =>
  isPostgres(trx) ? sql`for update of ${sql.table(table)} skip locked` : sql``
