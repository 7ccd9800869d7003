import { type AuditServices, addAuditEntry } from '../audit.ts'
import { type BeforeCommit, type Database, type Trx, write, writeWith } from '../db/database.ts'
import { isFault, parseAddress, wireAddress } from '../engine/address/address.ts'
import type { ActionPolicy } from '../engine/verdict/action.ts'
import { omitUndefined } from '../platform/omit-undefined.ts'
import type { Random } from '../platform/random.ts'
import {
  type Account,
  type AccountPatch,
  accountIn,
  findAccountByName,
  createAccount as insertRow,
  updateAccount as updateRow,
} from './account-store.ts'
import { accountError } from './errors.ts'
import { exceedingRights, type KeyRights, UNRESTRICTED } from './key-rights.ts'
import { parseName } from './name.ts'
import { hasJoined, listPeople } from './people/person-store.ts'
import { exceedsPlan, type Plan } from './plan.ts'

export type AccountServices = AuditServices & { readonly database: Database }

type AccountInput = {
  readonly name: string
  readonly plan: string
  /** Recipient of webhook failure alerts; null if the account has no address of its own. */
  readonly email: string | null
}

type Plans = ReadonlyMap<string, Plan>

/** The key that makes the request, and the plan of its account. */
export type AccountActor = { readonly key: KeyRights; readonly plan: Plan }

/** Null for the admin at the command line, who is not restricted. */
type Actor = { readonly actor: AccountActor | null }

/**
 * A key gives an account nothing that it lacks. A key without restrictions and with all scopes may
 * do everything. Any other key, such as that of a sign-up service, neither makes an account an admin
 * nor takes that away, because keys of an admin account may have all scopes; and it sets no plan
 * that allows more than its own. Throws `account_rights_exceeded`.
 */
function requireAccountRights(
  { actor }: Actor,
  { plan, isAdmin }: { readonly plan?: Plan | undefined; readonly isAdmin?: boolean | undefined },
): void {
  if (actor === null || exceedingRights(ALL_RIGHTS, actor.key).length === 0) return
  if (isAdmin !== undefined) throw accountError('account_rights_exceeded', { field: 'admin' })
  if (plan !== undefined && exceedsPlan(plan, actor.plan)) {
    throw accountError('account_rights_exceeded', { field: 'plan' })
  }
}

const ALL_RIGHTS: KeyRights = { ...UNRESTRICTED, scopes: ['*'] }

/**
 * Validates the fields that need no database. Throws `name_invalid`, `plan_unknown` and
 * `email_invalid`.
 */
export function parseAccountInput({ name, plan, email }: AccountInput, plans: Plans): AccountInput {
  return {
    name: parseName(name),
    plan: parsePlan(plan, plans),
    email: email === null ? null : parseEmail(email),
  }
}

/** Returns `plan` if it is the name of a plan. Throws `plan_unknown`. */
export function parsePlan(plan: string, plans: Plans): string {
  if (plans.has(plan)) return plan
  throw accountError('plan_unknown', { plan, plans: [...plans.keys()] })
}

/**
 * Creates an account without API keys. Throws what `parseAccountInput` throws, and
 * `account_exists` and `account_rights_exceeded`.
 */
export function createAccount(
  { plans, ...services }: AccountServices & { readonly plans: Plans },
  input: AccountInput & Actor,
  beforeCommit?: BeforeCommit<Account>,
): Promise<Account> {
  const { database, clock, random } = services
  const fields = parseAccountInput(input, plans)
  requireAccountRights(input, { plan: plans.get(fields.plan) })
  const id = newAccountId(random)
  const insert = async (trx: Trx) => {
    const existing = await findAccountByName(trx, fields.name)
    if (existing !== null) {
      throw accountError('account_exists', { id: existing.id, name: existing.name })
    }
    const account = await insertRow(trx, { ...fields, id, now: clock.now() })
    const entry = { action: 'account.created', accountId: id, target: account } as const
    await addAuditEntry(trx, services, entry)
    return account
  }
  return writeWith(database, insert, beforeCommit)
}

export const newAccountId = (random: Random) => `acc_${random.token(ID_LENGTH)}`

const ID_LENGTH = 16

type AccountChange = {
  readonly name?: string | undefined
  readonly plan?: string | undefined
  /** Recipient of webhook failure alerts; null removes it. */
  readonly email?: string | null | undefined
  /** Whether the account may manage accounts and open the Health page. */
  readonly isAdmin?: boolean | undefined
  /** Null: the policy of the service. */
  readonly actionPolicy?: ActionPolicy | null | undefined
  /** Whether people who sign in with a password need a second factor. */
  readonly isTwoFactorRequired?: boolean | undefined
}

/**
 * Changes the given fields of an account. Throws `name_invalid`, `account_name_taken`,
 * `plan_unknown`, `email_invalid`, `account_not_found`, `account_rights_exceeded` and
 * `two_factor_without_admin`.
 */
export async function changeAccount(
  { plans, ...services }: AccountServices & { readonly plans: Plans },
  {
    accountId: id,
    actor,
    name,
    plan,
    email,
    isAdmin,
    actionPolicy,
    isTwoFactorRequired,
  }: AccountChange & Actor & { readonly accountId: string },
): Promise<Account> {
  const patch: AccountPatch = omitUndefined({
    name: name === undefined ? undefined : parseName(name),
    plan: plan === undefined ? undefined : parsePlan(plan, plans),
    email: typeof email === 'string' ? parseEmail(email) : email,
    operator: toNumber(isAdmin),
    action_policy: actionPolicy,
    two_factor_required: toNumber(isTwoFactorRequired),
  })
  requireAccountRights({ actor }, { plan: plans.get(patch.plan ?? ''), isAdmin })
  const changed = Object.keys(patch).map(name => (name === 'operator' ? 'admin' : name))
  return write(services.database, async trx => {
    if (patch.name !== undefined) await requireFreeName(trx, id, patch.name)
    if (isTwoFactorRequired) await requireAdmin(trx, id)
    const account =
      changed.length === 0 ? await accountIn(trx, id) : await updateRow(trx, id, patch)
    if (account === null) throw accountError('account_not_found', { id })
    const entry = { action: 'account.updated', accountId: id, target: account, changed } as const
    if (changed.length > 0) await addAuditEntry(trx, services, entry)
    return account
  })
}

const toNumber = (is: boolean | undefined) => (is === undefined ? undefined : is ? 1 : 0)

/** API keys cannot sign in where a second factor is required, so somebody else must be able to. */
async function requireAdmin(trx: Trx, accountId: string): Promise<void> {
  const people = await listPeople(trx, accountId)
  if (people.some(person => person.role === 'admin' && hasJoined(person))) return
  throw accountError('two_factor_without_admin', {})
}

/** Commands take the name of an account in place of its ID. Throws `account_name_taken`. */
async function requireFreeName(trx: Trx, accountId: string, name: string): Promise<void> {
  const existing = await findAccountByName(trx, name)
  // The error does not have the ID of the other account: the caller may not see other accounts.
  if (existing !== null && existing.id !== accountId)
    throw accountError('account_name_taken', { name })
}

/**
 * Parses an address for alert emails. It is written into the header of an email, so an address that
 * needs quoting or encoding is rejected. Throws `email_invalid`.
 */
export function parseEmail(email: string): string {
  const address = parseAddress(email.trim())
  if (isFault(address)) throw accountError('email_invalid', { email, fault: address.message })
  const isPlain = /^[!-~]+$/.test(address.local) && !address.local.startsWith('"')
  if (isPlain && address.domain.kind !== 'literal') return wireAddress(address)
  throw accountError('email_invalid', { email, fault: null })
}
