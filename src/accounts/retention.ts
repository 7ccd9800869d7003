import { sql } from 'kysely'
import { type Expiry, skipLocked } from '../db/paging.ts'
import { SESSION_IDLE_MS } from './session-store.ts'

/** Deletes responses stored for an Idempotency-Key until a time, epoch ms. */
export const deleteReplaysBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select key_id, idempotency_key from replay where created_at <= ${before} limit ${max}
      ${skipLocked(trx, 'replay')})
    delete from replay
    where (key_id, idempotency_key) in (select key_id, idempotency_key from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Deletes dashboard sessions that are expired or idle for too long at a time, epoch ms. */
export const deleteSessionsUntil: Expiry = async (trx, until, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select id from session
      where expires_at <= ${until} or last_seen_at <= ${until - SESSION_IDLE_MS} limit ${max}
      ${skipLocked(trx, 'session')})
    delete from session where id in (select id from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

/** Deletes credit counts of days before a time, epoch ms, without reservations. */
export const deleteCreditsBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select account_id, period_start from credit
      where period_start < ${before} and held = 0 limit ${max} ${skipLocked(trx, 'credit')})
    delete from credit
    where (account_id, period_start) in (select account_id, period_start from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}
