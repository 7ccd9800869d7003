import { expect, test } from 'vitest'
import { findAccount, listAccounts } from '../../src/accounts/account-store.ts'
import { changeAccount, createAccount } from '../../src/accounts/accounts.ts'
import { PLANS } from '../../src/accounts/plan.ts'
import { COMMAND_LINE } from '../../src/audit.ts'
import { addAccount } from '../support/account-rows.ts'
import { fakeClock } from '../support/clock.ts'
import { tempDatabase } from '../support/database.ts'
import { countedRandom } from '../support/random.ts'

async function createServices() {
  const clock = fakeClock()
  const plans = new Map(PLANS.map(plan => [plan.name, plan]))
  const database = await tempDatabase({ clock })
  return { database, clock, random: countedRandom(), origin: COMMAND_LINE, plans }
}

const SHOP = { name: ' Shop ', plan: 'free', email: ' Owner@SHOP.example', actor: null }

test('creates an account with a trimmed name and a normalized address', async () => {
  const services = await createServices()
  const account = await createAccount(services, SHOP)
  expect(account).toMatchObject({ name: 'Shop', email: 'Owner@shop.example', operator: 0 })
  expect(await listAccounts(services.database)).toEqual([account])
})

test.each([
  ['name_invalid', { name: ' ' }],
  ['name_invalid', { name: 'a\nb' }],
  ['plan_unknown', { plan: 'huge' }],
  ['email_invalid', { email: 'owner' }],
])('creates no account when it is rejected with %s: %j', async (code, change) => {
  const services = await createServices()
  const create = async () => createAccount(services, { ...SHOP, ...change })
  await expect(create()).rejects.toMatchObject({ code })
  expect(await listAccounts(services.database)).toEqual([])
})

test('creates one of two accounts with the same name at the same time', async () => {
  const services = await createServices()
  const both = await Promise.allSettled([
    createAccount(services, SHOP),
    createAccount(services, SHOP),
  ])
  expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  const [account] = await listAccounts(services.database)
  await expect(createAccount(services, SHOP)).rejects.toThrow(
    expect.objectContaining({ code: 'account_exists', facts: { id: account?.id, name: 'Shop' } }),
  )
})

test('keeps the last valid change of an account', async () => {
  const services = await createServices()
  const { database } = services
  await addAccount(database)
  const accountId = 'acc_a'
  await changeAccount(services, { accountId, plan: 'starter', actor: null })
  await changeAccount(services, { accountId, email: 'ops@b.example', actor: null })
  const changed = await changeAccount(services, { accountId, isAdmin: true, actor: null })
  expect(changed).toMatchObject({ plan: 'starter', email: 'ops@b.example', operator: 1 })
  const refused = [
    () => changeAccount(services, { accountId, plan: 'huge', actor: null }),
    () => changeAccount(services, { accountId, email: 'ops', actor: null }),
    () => changeAccount(services, { accountId: 'acc_none', isAdmin: true, actor: null }),
  ]
  for (const one of refused) await expect(one()).rejects.toThrow()
  expect(await findAccount(database, accountId)).toEqual(changed)
})
