import { sql } from 'kysely'
import type { Database, Trx } from '../database.ts'
import { isPostgres } from '../sql-dialect.ts'

// If the connection is lost during COMMIT, the server knows whether the transaction was committed.

/** Returns the transaction ID for `wasCommitted`; null on SQLite, which does not record it. */
export async function commitMark(trx: Trx): Promise<string | null> {
  if (!isPostgres(trx)) return null
  const { rows } = await sql<{ mark: string }>`
    select cast(pg_current_xact_id() as text) as mark`.execute(trx)
  return rows[0]?.mark ?? null
}

/** Whether a transaction was committed. Throws an outage error while it is still in progress. */
export async function wasCommitted({ db }: Database, mark: string): Promise<boolean> {
  const { rows } = await sql<{ status: string | null }>`
    select pg_xact_status(cast(cast(${mark} as text) as xid8)) as status`.execute(db)
  const status = rows[0]?.status
  if (status !== 'in progress') return status === 'committed'
  throw Object.assign(
    new Error('the server has not finished a transaction of a lost connection yet'),
    {
      code: TRANSACTION_RESOLUTION_UNKNOWN,
    },
  )
}

/** SQLSTATE: transaction_resolution_unknown. */
const TRANSACTION_RESOLUTION_UNKNOWN = '08007'
