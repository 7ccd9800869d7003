import { sql } from 'kysely'
import type { Database, Trx } from '../database.ts'
import { isPostgres } from '../sql-dialect.ts'

// A commit whose answer is lost with the connection may have been made: the server knows.

/** By what can be told later whether this transaction was committed; null: the database keeps no account of that. */
export async function commitMark(trx: Trx): Promise<string | null> {
  if (!isPostgres(trx)) return null
  const { rows } = await sql<{ mark: string }>`
    select cast(pg_current_xact_id() as text) as mark`.execute(trx)
  return rows[0]?.mark ?? null
}

/** Whether a transaction was committed. Throws as in an outage while it cannot be told yet. */
export async function wasCommitted({ db }: Database, mark: string): Promise<boolean> {
  const { rows } = await sql<{ status: string | null }>`
    select pg_xact_status(cast(cast(${mark} as text) as xid8)) as status`.execute(db)
  const status = rows[0]?.status
  if (status !== 'in progress') return status === 'committed'
  throw Object.assign(
    new Error('the server has not ended a transaction of a lost connection yet'),
    {
      code: TRANSACTION_RESOLUTION_UNKNOWN,
    },
  )
}

/** SQLSTATE. */
const TRANSACTION_RESOLUTION_UNKNOWN = '08007'
