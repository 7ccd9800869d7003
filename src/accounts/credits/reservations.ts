import type { Trx } from '../../db/database.ts'
import { isPostgres, locking } from '../../db/sql-dialect.ts'
import { type CreditPeriod, settleCredits } from './credit-store.ts'

// Reservations of cluster members for single verifications. Where several locks are taken, the
// order is: jobs, accounts, credits, holds; several of a kind by key.

/**
 * Locks accounts until the end of the transaction. No other transaction that starts with this lock
 * settles credits for them; reserving credits stays possible.
 */
export async function lockAccounts(trx: Trx, ids: Iterable<string>): Promise<void> {
  const sorted = [...new Set(ids)].sort()
  if (sorted.length === 0 || !isPostgres(trx)) return
  await trx
    .selectFrom('account')
    .select('id')
    .where('id', 'in', sorted)
    .orderBy('id')
    .forNoKeyUpdate()
    .execute()
}

/**
 * Removes the reservation of a verification from the hold of its member. Returns how much can still
 * be released.
 */
export async function consumeReservation(
  trx: Trx,
  { accountId, period, member, amount }: CreditPeriod & { member: string | null; amount: number },
): Promise<number> {
  if (member === null || amount === 0) return amount
  await lockCredit(trx, { accountId, period })
  const hold = await trx
    .selectFrom('hold')
    .select('amount')
    .where('member_id', '=', member)
    .where('account_id', '=', accountId)
    .where('period_start', '=', period)
    .executeTakeFirst()
  // The member has expired, and its reservations were released then.
  if (hold === undefined) return 0
  const rest = Math.max(0, hold.amount - amount)
  const key = { member_id: member, account_id: accountId, period_start: period }
  if (rest === 0)
    await trx
      .deleteFrom('hold')
      .where(eb => eb.and(key))
      .execute()
  else
    await trx
      .updateTable('hold')
      .set({ amount: rest })
      .where(eb => eb.and(key))
      .execute()
  return hold.amount - rest
}

/** Releases all reservations of these members. */
export async function releaseReservations(trx: Trx, members: readonly string[]): Promise<void> {
  const holds = await trx
    .selectFrom('hold')
    .select(['account_id', 'period_start'])
    .distinct()
    .where('member_id', 'in', members)
    .orderBy('account_id')
    .orderBy('period_start')
    .execute()
  await lockAccounts(
    trx,
    holds.map(hold => hold.account_id),
  )
  for (const { account_id: accountId, period_start: period } of holds) {
    await lockCredit(trx, { accountId, period })
    const deleted = await trx
      .deleteFrom('hold')
      .where('member_id', 'in', members)
      .where('account_id', '=', accountId)
      .where('period_start', '=', period)
      .returning('amount')
      .execute()
    const released = deleted.reduce((sum, { amount }) => sum + amount, 0)
    if (released > 0) await settleCredits(trx, { accountId, period, released, used: 0 })
  }
}

/** Locks the credits of an account in a period until the end of the transaction. */
export async function lockCredit(trx: Trx, { accountId, period }: CreditPeriod): Promise<void> {
  await locking(trx, trx.selectFrom('credit').select('held'))
    .where('account_id', '=', accountId)
    .where('period_start', '=', period)
    .execute()
}
