import { write } from '../db/database.ts'
import { EvError } from '../platform/error.ts'
import { countAccounts, createAccount } from './account-store.ts'
import { type AccountServices, newAccountId } from './accounts.ts'
import { newSecret } from './key.ts'
import { createKey } from './key-store.ts'
import { newKeyId } from './keys.ts'
import type { Plan } from './plan.ts'

/**
 * Creates the first account, which is the admin's, with a key that may do everything, and returns the key's text; null:
 * there are accounts. Of several services that start at once one does.
 */
export async function createFirstAccount(
  { database, clock, random }: AccountServices,
  { plan, plans }: { readonly plan: string; readonly plans: ReadonlyMap<string, Plan> },
): Promise<string | null> {
  if ((await countAccounts(database)) > 0) return null
  if (!plans.has(plan)) throw noSuchPlan(plan, plans)
  const secret = newSecret(random, 'live')
  const accountId = newAccountId(random)
  const now = clock.now()
  return write(database, async trx => {
    // Another service may have started on the same database just now.
    if ((await countAccounts({ db: trx })) > 0) return null
    await createAccount(trx, { id: accountId, name: 'default', plan, operator: true, now })
    await createKey(trx, {
      ...{ id: newKeyId(random), accountId, name: 'first', secret, now },
      ...{ scopes: ['*'], allowedIps: [], allowedDomains: [] },
      ...{ rateLimitPerMinute: null, expiresAt: null },
    })
    return secret.text
  })
}

const noSuchPlan = (plan: string, plans: ReadonlyMap<string, Plan>) =>
  new EvError(
    'bad_config',
    `There is no plan “${plan}” for the first account; there are ${[...plans.keys()].join(', ')}. Name one with --plan, or add it to "plans" in the config file.`,
  )
