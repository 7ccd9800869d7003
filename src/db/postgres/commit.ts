import { sql } from 'kysely'
import type { Database, Trx } from '../database.ts'
import { isPostgres } from '../sql-dialect.ts'
import { codeOf } from './errors.ts'

// If the connection is lost during COMMIT, the server knows whether the transaction was committed.

/** Returns the transaction ID for `wasCommitted`; null on SQLite, which does not record it. */
export async function commitMark(trx: Trx): Promise<string | null> {
  if (!isPostgres(trx)) return null
  const { rows } = await sql<{ mark: string }>`
    select cast(pg_current_xact_id() as text) as mark`.execute(trx)
  return rows[0]?.mark ?? null
}

/**
 * Whether a transaction was committed. Throws an outage error while it is still in progress.
 *
 * If a standby took over that did not have the transaction yet, the ID is unknown there, or belongs
 * to another transaction by now: check what was written, where that matters.
 */
export async function wasCommitted({ db }: Database, mark: string): Promise<boolean> {
  const status = await getStatus(db, mark)
  if (status !== 'in progress') return status === 'committed'
  throw Object.assign(
    new Error('the server has not finished a transaction of a lost connection yet'),
    {
      code: TRANSACTION_RESOLUTION_UNKNOWN,
    },
  )
}

async function getStatus(db: Database['db'], mark: string): Promise<string | null> {
  try {
    const { rows } = await sql<{ status: string | null }>`
      select pg_xact_status(cast(cast(${mark} as text) as xid8)) as status`.execute(db)
    return rows[0]?.status ?? null
  } catch (error) {
    if (codeOf(error) === INVALID_PARAMETER) return null
    throw error
  }
}

/** SQLSTATE of an ID that no transaction has had yet: invalid_parameter_value. */
const INVALID_PARAMETER = '22023'
/** SQLSTATE: transaction_resolution_unknown. */
const TRANSACTION_RESOLUTION_UNKNOWN = '08007'
