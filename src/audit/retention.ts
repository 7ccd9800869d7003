import { sql } from 'kysely'
import { type Expiry, skipLocked } from '../db/paging.ts'

/** Deletes entries of the audit log written before a time, epoch ms. */
export const deleteAuditBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select id from audit where created_at < ${before} order by created_at limit ${max}
      ${skipLocked(trx, 'audit')})
    delete from audit where id in (select id from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}
