import type { Trx } from '../../db/database.ts'
import { isPostgres, locking } from '../../db/sql-dialect.ts'
import { type CreditsOf, settleCredits } from './credit-store.ts'

// What members of a cluster hold for single verifications. Where two locks are taken, it is in this order: jobs, accounts,
// credits, holds; several of a kind in the order of their keys.

/** Nobody else counts anything of these accounts in a transaction that begins so; those who only hold credits may. */
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

/** Takes what a verification held from what its member does; gives how much of it is still there to be released. */
export async function consumeReservation(
  trx: Trx,
  { accountId, period, member, amount }: CreditsOf & { member: string | null; amount: number },
): Promise<number> {
  if (member === null || amount === 0) return amount
  await lockCredit(trx, { accountId, period })
  const had = await trx
    .selectFrom('hold')
    .select('amount')
    .where('member_id', '=', member)
    .where('account_id', '=', accountId)
    .where('period_start', '=', period)
    .executeTakeFirst()
  // Whoever buried the member gave it back.
  if (had === undefined) return 0
  const rest = Math.max(0, had.amount - amount)
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
  return had.amount - rest
}

/** Gives back all that these members hold. */
export async function releaseReservations(trx: Trx, members: readonly string[]): Promise<void> {
  const noted = await trx
    .selectFrom('hold')
    .select(['account_id', 'period_start'])
    .distinct()
    .where('member_id', 'in', members)
    .orderBy('account_id')
    .orderBy('period_start')
    .execute()
  await lockAccounts(
    trx,
    noted.map(hold => hold.account_id),
  )
  for (const { account_id: accountId, period_start: period } of noted) {
    await lockCredit(trx, { accountId, period })
    const gone = await trx
      .deleteFrom('hold')
      .where('member_id', 'in', members)
      .where('account_id', '=', accountId)
      .where('period_start', '=', period)
      .returning('amount')
      .execute()
    const released = gone.reduce((sum, { amount }) => sum + amount, 0)
    if (released > 0) await settleCredits(trx, { accountId, period, released, used: 0 })
  }
}

/** Nobody else holds, settles or tells of these credits before the transaction ends. */
export async function lockCredit(trx: Trx, { accountId, period }: CreditsOf): Promise<void> {
  await locking(trx, trx.selectFrom('credit').select('held'))
    .where('account_id', '=', accountId)
    .where('period_start', '=', period)
    .execute()
}
