import { type Kysely, sql, type Transaction } from 'kysely'
import type { Trx } from '../../db/database.ts'
import type { Reader } from '../../db/reader.ts'
import type { Schema } from '../../db/schema.ts'
import { greatest, isPostgres, locking } from '../../db/sql-dialect.ts'
import { accountError } from '../errors.ts'
import { type Plan, periodEnd } from '../plan.ts'
import type { CreditTable } from '../tables.ts'

type CreditPeriod = {
  readonly accountId: string
  /** Start of the credit period, epoch ms. */
  readonly period: number
}

/**
 * Reserves credits for verifications that are about to run. Returns false, and reserves nothing, if
 * the plan has too few left. It is one statement, so that only one of two concurrent requests gets
 * the last credit. `limit` null: unlimited.
 */
export async function reserveCredits(
  db: Kysely<Schema>,
  o: CreditPeriod & {
    readonly amount: number
    readonly limit: number | null
    /**
     * The cluster member that holds the reservation, which is released when the member expires.
     * Null or omitted outside a cluster and for reservations of a job.
     */
    readonly member?: string | null
  },
): Promise<boolean> {
  const { rows } = await (o.member ? reserveForMemberSql(o, o.member) : reserveSql(o)).execute(db)
  return rows.length === 1
}

const reserveSql = ({ accountId, period, amount, limit }: Parameters<typeof reserveCredits>[1]) => {
  // Each parameter has a cast: PostgreSQL takes an untyped one for text.
  const [id, start] = [sql`cast(${accountId} as text)`, sql`cast(${period} as bigint)`]
  const [n, most] = [
    sql`cast(${amount} as bigint)`,
    sql`cast(${limit ?? Number.MAX_SAFE_INTEGER} as bigint)`,
  ]
  return sql`
    insert into credit (account_id, period_start, used, held, warned)
    select ${id}, ${start}, 0, ${n}, 0 where ${n} <= ${most}
    on conflict (account_id, period_start) do update set held = credit.held + ${n}
      where credit.used + credit.held + ${n} <= ${most}
    returning held`
}

/** Locks the credit row before the hold row, the lock order used everywhere. */
const reserveForMemberSql = (o: Parameters<typeof reserveCredits>[1], member: string) => sql`
  with credited as (${reserveSql(o)})
  insert into hold (member_id, account_id, period_start, amount)
  select cast(${member} as text), cast(${o.accountId} as text), cast(${o.period} as bigint),
    cast(${o.amount} as bigint) from credited
  on conflict (member_id, account_id, period_start) do update
    set amount = hold.amount + excluded.amount
  returning amount`

/** Charges credits that were used, and releases those that were reserved for them. */
export async function settleCredits(
  trx: Transaction<Schema>,
  { accountId, period, released, used }: CreditPeriod & { released: number; used: number },
): Promise<CreditTable> {
  // Not below zero: reservations left by a crash are released at startup, perhaps before they are
  // settled.
  const rest = greatest(trx, sql`0`, sql`credit.held - cast(${released} as bigint)`)
  const { rows } = await sql<CreditTable>`
    insert into credit (account_id, period_start, used, held, warned)
    values (${accountId}, ${period}, ${used}, 0, 0)
    on conflict (account_id, period_start) do update set
      used = credit.used + excluded.used, held = ${rest}
    returning *`.execute(trx)
  return rows[0] as CreditTable
}

/** Returns the credits of an account in a period; zeros if it has used none yet. */
export async function readCredit(
  from: Reader | { readonly reader: Reader },
  accountId: string,
  period: number,
): Promise<CreditTable> {
  const db = 'reader' in from ? from.reader : from
  const credit = await db
    .selectFrom('credit')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('period_start', '=', period)
    .executeTakeFirst()
  return credit ?? { account_id: accountId, period_start: period, used: 0, held: 0, warned: 0 }
}

/** Returns how many credits of a limited plan are left. */
export async function creditsLeft(
  from: Parameters<typeof readCredit>[0],
  { accountId, period, limit }: CreditPeriod & { readonly limit: number },
): Promise<number> {
  const { used, held } = await readCredit(from, accountId, period)
  return Math.max(0, limit - used - held)
}

/** Saves the last threshold that an event was sent for. */
export async function saveWarnedThreshold(
  trx: Transaction<Schema>,
  { accountId, period }: CreditPeriod,
  warned: number,
): Promise<void> {
  await trx
    .updateTable('credit')
    .set({ warned })
    .where('account_id', '=', accountId)
    .where('period_start', '=', period)
    .execute()
}

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
  await lowerHold(trx, { member, accountId, period }, rest)
  return hold.amount - rest
}

type HoldKey = { readonly member: string; readonly accountId: string; readonly period: number }

/**
 * Lowers what a member holds of the credits of a period to `rest`; one that is lower stays as it is.
 * The caller has locked the credits.
 */
export async function lowerHold(
  trx: Trx,
  { member, accountId, period }: HoldKey,
  rest: number,
): Promise<void> {
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
      .where('amount', '>', rest)
      .execute()
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

/** The error for an account without credits left today. */
export const creditsUsedUpError = (limit: number, now: number) =>
  accountError('credits_used_up', { limit, now, resetAt: periodEnd(now) })

/**
 * The error for a list that needs more credits than are left today; `needed` is null if unknown.
 */
export const creditsExceededError = (
  { name, creditsPerDay }: Plan,
  now: number,
  { needed, left }: { readonly needed: number | null; readonly left: number },
) =>
  accountError('credits_exceeded', {
    plan: name,
    creditsPerDay: creditsPerDay ?? 0,
    needed,
    left,
    now,
    resetAt: periodEnd(now),
  })
