import { type Kysely, sql } from 'kysely'
import type { Trx } from '../../db/database.ts'
import type { Schema } from '../../db/schema.ts'
import { greatest } from '../../db/sql-dialect.ts'

/** The storage and the open lists of an account. */
export type AccountLoad = {
  /** Rows of all its jobs, including the sandbox. */
  readonly storedRows: number
  /** Its lists that are queued or processing. */
  readonly openLists: number
}

/** Reads the load of an account: one row, and an index of open lists. */
export async function getAccountLoad(db: Kysely<Schema>, accountId: string): Promise<AccountLoad> {
  const { rows } = await sql<AccountLoad>`
    select stored_rows as "storedRows", (
      select count(*) from job where account_id = account.id and finished_at is null
        and type <> 'single' and state <> 'loading') as "openLists"
    from account where id = ${accountId}`.execute(db)
  const { storedRows = 0, openLists = 0 } = rows[0] ?? {}
  return { storedRows: Number(storedRows), openLists: Number(openLists) }
}

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
