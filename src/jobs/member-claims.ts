import { sql } from 'kysely'
import { releaseReservations } from '../accounts/credits/credit-store.ts'
import { membershipConnection } from '../cluster/members.ts'
import type { MemberClaims } from '../cluster/membership.ts'
import { type Database, type Trx, writeConcurrent } from '../db/database.ts'
import { locking } from '../db/sql-dialect.ts'
import { RELEASED } from './item-store.ts'

/** Releases the items and credit reservations of these members. A member ID is never used again. */
export async function releaseClaims(trx: Trx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  // Lock the jobs first, in the order in which their results are written.
  await locking(trx, trx.selectFrom('job').select('id'))
    .where('id', 'in', query =>
      query.selectFrom('item').select('job_id').where('holder', 'in', ids),
    )
    .orderBy('id')
    .execute()
  await trx
    .updateTable('item')
    .set({
      state: sql`case when state = 'probing' then ${RELEASED} else state end`,
      holder: null,
    })
    .where('holder', 'in', ids)
    .execute()
  await releaseReservations(trx, ids)
}

/**
 * Releases claims whose member no longer exists: an item may have been claimed, or credits
 * reserved, while the member was removed. Returns the IDs of these members.
 */
export async function releaseOrphanedClaims(database: Database): Promise<string[]> {
  // Skip scan of the index, one step per holder: thousands of items may be claimed.
  const { rows } = await sql<{ id: string }>`
    with recursive holding(id) as (
      select min(holder) from item where holder is not null
      union all
      select (select min(holder) from item where holder > holding.id)
      from holding where holding.id is not null)
    select id from (
      select id from holding where id is not null union select member_id from hold) as holders
    where not exists (select 1 from member where member.id = holders.id)`.execute(
    membershipConnection(database),
  )
  const ids = rows.map(({ id }) => id)
  if (ids.length > 0) await writeConcurrent(database, trx => releaseClaims(trx, ids))
  return ids
}

export const memberClaims: MemberClaims = {
  release: releaseClaims,
  releaseOrphaned: releaseOrphanedClaims,
}
