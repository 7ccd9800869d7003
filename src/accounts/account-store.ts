import { sql, type Transaction } from 'kysely'
import { countRows } from '../db/count-rows.ts'
import type { Database, Trx } from '../db/database.ts'
import { isAfter, type PagePosition } from '../db/paging.ts'
import type { Reader } from '../db/reader.ts'
import type { Schema } from '../db/schema.ts'
import { greatest } from '../db/sql-dialect.ts'
import { isoTime } from '../platform/format.ts'
import type { AccountTable } from './tables.ts'

export type Account = AccountTable

type NewAccount = {
  /** `acc_…` */
  readonly id: string
  readonly name: string
  readonly plan: string
  readonly email?: string | null
  /** Whether the account may see the Health page. */
  readonly operator?: boolean
  readonly now: number
}

export async function createAccount(
  trx: Transaction<Schema>,
  { id, name, plan, email = null, operator = false, now }: NewAccount,
): Promise<Account> {
  const flags = { operator: operator ? 1 : 0, two_factor_required: 0, stored_rows: 0 }
  const account = { id, name, plan, email, action_policy: null, created_at: now, ...flags }
  await trx.insertInto('account').values(account).execute()
  return account
}

export async function findAccount({ db }: Database, id: string): Promise<Account | null> {
  return accountIn(db, id)
}

/** Returns up to `max` accounts after a position, newest first. */
export function getAccountPage(
  { reader }: Database,
  { after, max }: { readonly after: PagePosition | null; readonly max: number },
): Promise<Account[]> {
  const all = reader.selectFrom('account').selectAll()
  const query = after === null ? all : all.where(isAfter(after))
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(max).execute()
}

/** Lists all accounts, oldest first. */
export function listAccounts({ db }: Database): Promise<Account[]> {
  return db.selectFrom('account').selectAll().orderBy('created_at').orderBy('id').execute()
}

export type AccountPatch = Partial<
  Pick<Account, 'name' | 'plan' | 'email' | 'operator' | 'action_policy' | 'two_factor_required'>
>

/** Updates the fields in `patch`. Returns null if there is no such account. */
export async function updateAccount(
  trx: Transaction<Schema>,
  id: string,
  patch: AccountPatch,
): Promise<Account | null> {
  const query = trx.updateTable('account').set(patch).where('id', '=', id)
  return (await query.returningAll().executeTakeFirst()) ?? null
}

export async function findAccountByName(
  trx: Transaction<Schema>,
  name: string,
): Promise<Account | null> {
  const query = trx.selectFrom('account').selectAll().where('name', '=', name).orderBy('created_at')
  return (await query.executeTakeFirst()) ?? null
}

/** Counts all accounts. Inside a transaction, pass `{ db: trx }`. */
export async function countAccounts({ db }: Pick<Database, 'db'>): Promise<number> {
  return countRows(db.selectFrom('account'))
}

/** Finds an account through `db`, which may be a transaction. */
export async function accountIn(db: Reader, id: string): Promise<Account | null> {
  return (
    (await db.selectFrom('account').selectAll().where('id', '=', id).executeTakeFirst()) ?? null
  )
}

/** A job whose rows are stored. */
type Stored = { readonly account_id: string | null; readonly total: number }

/**
 * Adds the rows of a job that is completely stored. The account row stays locked until the end of
 * the transaction.
 */
export async function addStoredRows(trx: Trx, { account_id, total }: Stored): Promise<void> {
  if (account_id === null || total === 0) return
  await sql`
    update account set stored_rows = stored_rows + cast(${total} as bigint)
    where id = ${account_id}`.execute(trx)
}

/** Subtracts the rows of a deleted job. */
export async function subtractStoredRows(trx: Trx, { account_id, total }: Stored): Promise<void> {
  if (account_id === null || total === 0) return
  const rest = greatest(trx, sql`0`, sql`stored_rows - cast(${total} as bigint)`)
  await sql`update account set stored_rows = ${rest} where id = ${account_id}`.execute(trx)
}

/** Returns the JSON form of an account, for the API and the command line. */
export const presentAccount = (account: Account) => ({
  id: account.id,
  name: account.name,
  plan: account.plan,
  email: account.email,
  admin: account.operator === 1,
  action_policy: account.action_policy,
  two_factor_required: account.two_factor_required === 1,
  created_at: isoTime(account.created_at),
})
