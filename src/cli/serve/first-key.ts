import { newSecret } from '../../account/key.ts'
import type { Plan } from '../../account/plan.ts'
import { EvError } from '../../base/error.ts'
import type { Random } from '../../base/random.ts'
import { countAccounts, createAccount } from '../../store/account/accounts.ts'
import { createKey } from '../../store/account/keys.ts'
import { type Database, write } from '../../store/database.ts'

/**
 * Makes the first account with a key that may do everything, and gives the key's text; null: there are accounts. Of
 * several services that begin at once one makes it.
 */
export async function firstKey(
  database: Database,
  plan: string,
  plans: ReadonlyMap<string, Plan>,
  random: Random,
): Promise<string | null> {
  if ((await countAccounts(database)) > 0) return null
  if (!plans.has(plan)) throw noSuchPlan(plan, plans)
  const secret = newSecret(random, 'live')
  const accountId = `acc_${random.token(ID_LENGTH)}`
  const now = database.clock.now()
  return write(database, async trx => {
    // Another service may have begun on the same database just now.
    if ((await countAccounts({ db: trx })) > 0) return null
    await createAccount(trx, { id: accountId, name: 'default', plan, operator: true, now })
    await createKey(trx, {
      ...{ id: `key_${random.token(ID_LENGTH)}`, accountId, name: 'first', secret, now },
      ...{ scopes: ['*'], allowedIps: [], allowedDomains: [] },
      ...{ rateLimitPerMinute: null, expiresAt: null },
    })
    return secret.text
  })
}

const ID_LENGTH = 16

const noSuchPlan = (plan: string, plans: ReadonlyMap<string, Plan>) =>
  new EvError(
    'bad_config',
    `There is no plan “${plan}” for the first account; there are ${[...plans.keys()].join(', ')}. Name one with --plan, or add it to "plans" in the config file.`,
  )
