import { type AuditServices, addAuditEntry } from '../audit/audit-store.ts'
import { type Database, write } from '../db/database.ts'
import { OperationError } from '../platform/operation-error.ts'
import type { Random } from '../platform/random.ts'
import {
  type Account,
  type AccountPatch,
  findAccountByName,
  createAccount as insertRow,
  updateAccount,
} from './account-store.ts'
import { parseEmail } from './email.ts'
import { parseName } from './name.ts'
import type { Plan } from './plan.ts'

export type AccountServices = AuditServices & { readonly database: Database }

type AccountInput = {
  readonly name: string
  readonly plan: string
  /** Recipient of webhook failure alerts; null if the account has no address of its own. */
  readonly email: string | null
}

type Plans = ReadonlyMap<string, Plan>

/**
 * Validates the fields that need no database. Throws `name_invalid`, `plan_unknown` and
 * `email_invalid`.
 */
export function parseAccountInput({ name, plan, email }: AccountInput, plans: Plans): AccountInput {
  return {
    name: parseName(name, 'account'),
    plan: parsePlan(plan, plans),
    email: email === null ? null : parseEmail(email),
  }
}

/** Returns `plan` if it is the name of a plan. Throws `plan_unknown`. */
export function parsePlan(plan: string, plans: Plans): string {
  if (plans.has(plan)) return plan
  throw new OperationError('plan_unknown', { plan, plans: [...plans.keys()] })
}

/**
 * Creates an account without API keys. Throws what `parseAccountInput` throws, and
 * `account_exists`.
 */
export function createAccount(
  { plans, ...services }: AccountServices & { readonly plans: Plans },
  input: AccountInput,
): Promise<Account> {
  const { database, clock, random } = services
  const fields = parseAccountInput(input, plans)
  const id = newAccountId(random)
  return write(database, async trx => {
    const existing = await findAccountByName(trx, fields.name)
    if (existing !== null) {
      throw new OperationError('account_exists', { id: existing.id, name: existing.name })
    }
    const account = await insertRow(trx, { ...fields, id, now: clock.now() })
    const entry = { action: 'account.created', accountId: id, target: account } as const
    await addAuditEntry(trx, services, entry)
    return account
  })
}

export const newAccountId = (random: Random) => `acc_${random.token(ID_LENGTH)}`

const ID_LENGTH = 16

/** Changes the plan of an account. Throws `plan_unknown` and `account_not_found`. */
export async function setPlan(
  { plans, ...services }: AccountServices & { readonly plans: Plans },
  { accountId, plan }: { readonly accountId: string; readonly plan: string },
): Promise<Account> {
  return change(services, accountId, { plan: parsePlan(plan, plans) })
}

/** Sets the address for webhook failure alerts. Throws `email_invalid` and `account_not_found`. */
export async function setEmail(
  services: AccountServices,
  { accountId, email }: { readonly accountId: string; readonly email: string | null },
): Promise<Account> {
  return change(services, accountId, { email: email === null ? null : parseEmail(email) })
}

/** Grants or revokes access to the Health page. Throws `account_not_found`. */
export async function setAdmin(
  services: AccountServices,
  { accountId, isAdmin }: { readonly accountId: string; readonly isAdmin: boolean },
): Promise<Account> {
  return change(services, accountId, { operator: isAdmin ? 1 : 0 })
}

function change(services: AccountServices, id: string, patch: AccountPatch): Promise<Account> {
  return write(services.database, async trx => {
    const account = await updateAccount(trx, id, patch)
    if (account === null) throw new OperationError('account_not_found', { id })
    const changed = Object.keys(patch).map(name => (name === 'operator' ? 'admin' : name))
    const entry = { action: 'account.updated', accountId: id, target: account, changed } as const
    await addAuditEntry(trx, services, entry)
    return account
  })
}
