import type { Kysely, Transaction } from 'kysely'
import type { Database } from '../database.ts'
import type { Schema } from '../schema.ts'
import type { AccountTable } from './tables.ts'

export type Account = AccountTable

export type NewAccount = {
  /** `acc_…` */
  readonly id: string
  readonly name: string
  readonly plan: string
  readonly email?: string | null
  /** Whether it is that of whoever runs the service. */
  readonly operator?: boolean
  readonly now: number
}

export async function createAccount(
  trx: Transaction<Schema>,
  { id, name, plan, email = null, operator = false, now }: NewAccount,
): Promise<Account> {
  const flags = { operator: operator ? 1 : 0, stored_rows: 0 }
  const account = { id, name, plan, email, created_at: now, ...flags }
  await trx.insertInto('account').values(account).execute()
  return account
}

export async function findAccount({ db }: Database, id: string): Promise<Account | null> {
  return accountIn(db, id)
}

/** All of them, the oldest first. */
export function listAccounts({ db }: Database): Promise<Account[]> {
  return db.selectFrom('account').selectAll().orderBy('created_at').orderBy('id').execute()
}

/** False when there is no such account. */
export async function setPlan(
  trx: Transaction<Schema>,
  id: string,
  plan: string,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('account')
    .set({ plan })
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

/** Who is written to from now on; false when there is no such account. */
export async function setEmail(
  trx: Transaction<Schema>,
  id: string,
  email: string | null,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('account')
    .set({ email })
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

/** Whether it is that of whoever runs the service; false when there is no such account. */
export async function setOperator(
  trx: Transaction<Schema>,
  id: string,
  operator: boolean,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('account')
    .set({ operator: operator ? 1 : 0 })
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

/** For use inside a transaction too, as `{ db: trx }`. */
export async function countAccounts({ db }: Pick<Database, 'db'>): Promise<number> {
  const { count } = await db
    .selectFrom('account')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** For use inside a transaction too. */
export async function accountIn(db: Kysely<Schema>, id: string): Promise<Account | null> {
  return (
    (await db.selectFrom('account').selectAll().where('id', '=', id).executeTakeFirst()) ?? null
  )
}
