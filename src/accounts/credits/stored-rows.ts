import { sql } from 'kysely'
import type { Trx } from '../../db/database.ts'
import { greatest } from '../../db/sql-dialect.ts'

/** A job whose rows are stored. */
type Stored = { readonly account_id: string | null; readonly total: number }

/**
 * Adds the rows of a job that is completely stored. The account row stays locked until the end of
 * the transaction.
 */
export async function addStoredRows(trx: Trx, { account_id, total }: Stored): Promise<void> {
  if (account_id === null || total === 0) return
  await sql`
    update account set stored_rows = stored_rows + cast(${total} as bigint)
    where id = ${account_id}`.execute(trx)
}

/** Subtracts the rows of a deleted job. */
export async function subtractStoredRows(trx: Trx, { account_id, total }: Stored): Promise<void> {
  if (account_id === null || total === 0) return
  const rest = greatest(trx, sql`0`, sql`stored_rows - cast(${total} as bigint)`)
  await sql`update account set stored_rows = ${rest} where id = ${account_id}`.execute(trx)
}
