import { sql, type Transaction } from 'kysely'
import { settleCredits } from '../accounts/credits/credit-store.ts'
import type { Schema } from '../db/schema.ts'
import { locking } from '../db/sql-dialect.ts'
import type { JobTable } from './tables.ts'

/** Releases the remaining credit reservation of a job on which no more work is done. */
export async function releaseReservation(
  trx: Transaction<Schema>,
  { id }: Pick<JobTable, 'id'>,
): Promise<void> {
  const job = await trx
    .selectFrom('job')
    .select(['account_id', 'credit_period', 'held'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (job === undefined || job.account_id === null || job.credit_period === null) return
  if (job.held === 0) return
  const { account_id: accountId, credit_period: period, held: released } = job
  await settleCredits(trx, { accountId, period, released, used: 0 })
  await trx.updateTable('job').set({ held: 0 }).where('id', '=', id).execute()
}

/**
 * Releases orphaned reservations at startup: single verifications in flight were lost, so only open
 * jobs and cluster members keep reservations.
 */
export async function releaseOrphanedReservations(trx: Transaction<Schema>): Promise<void> {
  // Locked first, or reservations made meanwhile would be lost.
  await locking(trx, trx.selectFrom('credit').select('account_id').where('held', '>', 0))
    .orderBy('account_id')
    .orderBy('period_start')
    .execute()
  await sql`
    delete from hold where not exists (select 1 from member where id = hold.member_id)`.execute(trx)
  await sql`
    update credit set held = coalesce((
      select sum(job.held) from job where job.account_id = credit.account_id
        and job.credit_period = credit.period_start and job.finished_at is null), 0)
      + coalesce((
      select sum(hold.amount) from hold where hold.account_id = credit.account_id
        and hold.period_start = credit.period_start), 0)
    where held > 0`.execute(trx)
}
