import { type Kysely, sql, type Transaction } from 'kysely'
import type { Schema } from '../../db/schema.ts'
import { greatest } from '../../db/sql-dialect.ts'
import type { CreditTable } from '../tables.ts'

export type CreditsOf = {
  readonly accountId: string
  /** Its beginning, epoch ms. */
  readonly period: number
}

/**
 * Sets credits aside for what is about to be done; false when the plan has not so many left, and nothing is
 * set aside then. One statement, so that of two who want the last credit one gets it. Null limit: any number.
 */
export async function reserveCredits(
  db: Kysely<Schema>,
  o: CreditsOf & {
    readonly amount: number
    readonly limit: number | null
    /** The member of the cluster with which they go back; null or left out: there is none, or a job holds them. */
    readonly member?: string | null
  },
): Promise<boolean> {
  const { rows } = await (o.member ? heldFor(o, o.member) : held(o)).execute(db)
  return rows.length === 1
}

const held = ({ accountId, period, amount, limit }: Parameters<typeof reserveCredits>[1]) => {
  // Each is named by its type: PostgreSQL takes what stands by itself for a text.
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

/** The credit is locked before the hold, here as everywhere. */
const heldFor = (o: Parameters<typeof reserveCredits>[1], member: string) => sql`
  with credited as (${held(o)})
  insert into hold (member_id, account_id, period_start, amount)
  select cast(${member} as text), cast(${o.accountId} as text), cast(${o.period} as bigint),
    cast(${o.amount} as bigint) from credited
  on conflict (member_id, account_id, period_start) do update
    set amount = hold.amount + excluded.amount
  returning amount`

/** Counts what was used, and gives back what was set aside for it. */
export async function settleCredits(
  trx: Transaction<Schema>,
  { accountId, period, released, used }: CreditsOf & { released: number; used: number },
): Promise<CreditTable> {
  // Nothing below zero: what a crash left held was given back at the start, perhaps before it is settled.
  const rest = greatest(trx, sql`0`, sql`credit.held - cast(${released} as bigint)`)
  const { rows } = await sql<CreditTable>`
    insert into credit (account_id, period_start, used, held, warned)
    values (${accountId}, ${period}, ${used}, 0, 0)
    on conflict (account_id, period_start) do update set
      used = credit.used + excluded.used, held = ${rest}
    returning *`.execute(trx)
  return rows[0] as CreditTable
}

/** How an account stands; zeros where it used nothing yet. */
export async function readCredit(
  from: Kysely<Schema> | { readonly reader: Kysely<Schema> },
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

/** How many credits of a limited plan can still be had. */
export async function creditsLeft(
  from: Parameters<typeof readCredit>[0],
  { accountId, period, limit }: CreditsOf & { readonly limit: number },
): Promise<number> {
  const { used, held } = await readCredit(from, accountId, period)
  return Math.max(0, limit - used - held)
}

/** Notes up to which threshold an account was told. */
export async function noteWarned(
  trx: Transaction<Schema>,
  { accountId, period }: CreditsOf,
  warned: number,
): Promise<void> {
  await trx
    .updateTable('credit')
    .set({ warned })
    .where('account_id', '=', accountId)
    .where('period_start', '=', period)
    .execute()
}
