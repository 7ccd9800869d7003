import { expect, test } from 'vitest'
import { createFirstAccount } from '../../src/accounts/first-account.ts'
import { hashSecret } from '../../src/accounts/key.ts'
import { findKeyByHash } from '../../src/accounts/key-store.ts'
import { PLANS } from '../../src/accounts/plan.ts'
import { tempDatabase } from '../support/database.ts'
import { countedRandom } from '../support/random.ts'

test('the first account is the admin account, with a key that may sign in', async () => {
  const database = await tempDatabase()
  const plans = new Map(PLANS.map(plan => [plan.name, plan]))
  const services = { database, clock: database.clock, random: countedRandom() }
  const text = await createFirstAccount(services, { plan: 'free', plans })
  expect(await findKeyByHash(database, hashSecret(text ?? ''))).toMatchObject({
    account: { name: 'default', plan: 'free', operator: 1 },
    key: { scopes: ['*'] },
  })
  expect(await createFirstAccount(services, { plan: 'free', plans })).toBeNull()
})
