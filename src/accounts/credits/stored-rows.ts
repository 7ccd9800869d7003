import { type Kysely, sql } from 'kysely'
import type { Trx } from '../../db/database.ts'
import type { Schema } from '../../db/schema.ts'
import { greatest } from '../../db/sql-dialect.ts'

/** What the jobs of an account take up. */
export type AccountLoad = {
  /** Rows of all its jobs, of the sandbox too. */
  readonly storedRows: number
  /** Its lists that are queued or processing. */
  readonly openLists: number
}

/** How much an account has stored and under work: one row, and an index of open lists. */
export async function accountLoad(db: Kysely<Schema>, accountId: string): Promise<AccountLoad> {
  const { rows } = await sql<AccountLoad>`
    select stored_rows as "storedRows", (
      select count(*) from job where account_id = account.id and finished_at is null
        and type <> 'single' and state <> 'loading') as "openLists"
    from account where id = ${accountId}`.execute(db)
  const { storedRows = 0, openLists = 0 } = rows[0] ?? {}
  return { storedRows: Number(storedRows), openLists: Number(openLists) }
}

/** A list whose rows are stored. */
type Stored = { readonly account_id: string | null; readonly total: number }

/** Counts the rows of a job that is stored whole. Until the transaction ends, nobody else counts for this account. */
export async function addStoredRows(trx: Trx, { account_id, total }: Stored): Promise<void> {
  if (account_id === null || total === 0) return
  await sql`
    update account set stored_rows = stored_rows + cast(${total} as bigint)
    where id = ${account_id}`.execute(trx)
}

/** Takes the rows of a job that is removed out of the count. */
export async function subtractStoredRows(trx: Trx, { account_id, total }: Stored): Promise<void> {
  if (account_id === null || total === 0) return
  const rest = greatest(trx, sql`0`, sql`stored_rows - cast(${total} as bigint)`)
  await sql`update account set stored_rows = ${rest} where id = ${account_id}`.execute(trx)
}
