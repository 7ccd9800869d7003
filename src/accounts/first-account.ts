import { addAuditEntry, SERVICE } from '../audit.ts'
import { write } from '../db/database.ts'
import { EvError } from '../platform/error.ts'
import { countAccounts, createAccount } from './account-store.ts'
import { type AccountServices, newAccountId } from './accounts.ts'
import { newSecret } from './key.ts'
import { UNRESTRICTED } from './key-rights.ts'
import { createKey } from './key-store.ts'
import { newKeyId } from './keys.ts'
import type { Plan } from './plan.ts'

/**
 * Creates the first account, which is the admin's, with a key that has all scopes, and returns the
 * secret of the key. Returns null if there are accounts already. If several services start at once,
 * one of them creates it.
 */
export async function createFirstAccount(
  { database, clock, random }: Omit<AccountServices, 'origin'>,
  { plan, plans }: { readonly plan: string; readonly plans: ReadonlyMap<string, Plan> },
): Promise<string | null> {
  if ((await countAccounts(database)) > 0) return null
  if (!plans.has(plan)) throw noSuchPlan(plan, plans)
  const secret = newSecret(random, 'live')
  const accountId = newAccountId(random)
  const now = clock.now()
  return write(database, async trx => {
    // Another service may have created it on the same database since the check above.
    if ((await countAccounts({ db: trx })) > 0) return null
    const account = { id: accountId, name: 'default', plan, operator: true, now }
    await createAccount(trx, account)
    const key = await createKey(trx, {
      ...UNRESTRICTED,
      id: newKeyId(random),
      accountId,
      name: 'first',
      secret,
      now,
      scopes: ['*'],
    })
    const services = { clock, random, origin: SERVICE }
    await addAuditEntry(trx, services, { action: 'account.created', accountId, target: account })
    await addAuditEntry(trx, services, { action: 'key.created', accountId, target: key })
    return secret.text
  })
}

const noSuchPlan = (plan: string, plans: ReadonlyMap<string, Plan>) =>
  new EvError(
    'bad_config',
    `Unknown plan "${plan}" for the first account. Available plans: ${[...plans.keys()].join(', ')}. Choose one with --plan, or add it to "plans" in the config file.`,
  )
