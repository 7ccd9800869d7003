import { presentAccount } from '../../accounts/account-store.ts'
import { changeAccount } from '../../accounts/accounts.ts'
import {
  changePerson,
  invitationUrl,
  invitePerson,
  type PersonTarget,
  removePerson,
  renewInvitation,
  resetSecondFactor,
} from '../../accounts/people/people.ts'
import { listPeople, type Person, presentPerson } from '../../accounts/people/person-store.ts'
import { mergePlans } from '../../accounts/plan.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import type { CliContext } from '../context.ts'
import { auditServices } from '../database.ts'
import type { OwnedPerson, PeopleBackend } from '../remote/people.ts'
import { selectAccount } from '../select-account.ts'
import { requireBaseUrl } from '../serve/base-url.ts'
import { withAccounts } from './with-accounts.ts'

/** Manages the people of all accounts in the database of this machine, as its admin. */
export function createLocalPeople(context: CliContext, config: Config): PeopleBackend {
  const services = (database: Database) => ({ ...auditServices(context), database })
  return {
    list: account =>
      withAccounts(context, config, async ({ db }, accounts) => {
        const selected = account === undefined ? accounts : [selectAccount(accounts, account)]
        const people = await Promise.all(selected.map(({ id }) => listPeople(db, id)))
        return people.flat().map(present)
      }),
    invite: (input, account) =>
      withAccounts(context, config, async (database, accounts) => {
        const { id: accountId } = selectAccount(accounts, account)
        const baseUrl = await requireBaseUrl(database, config)
        const invited = { ...input, accountId, actor: null }
        const { person, token } = await invitePerson(services(database), invited)
        return { person: present(person), url: invitationUrl(baseUrl, token) }
      }),
    link: found =>
      withAccounts(context, config, async database => {
        const baseUrl = await requireBaseUrl(database, config)
        const { person, token } = await renewInvitation(services(database), targetOf(found))
        return { person: present(person), url: invitationUrl(baseUrl, token) }
      }),
    setRole: (found, role) =>
      withAccounts(context, config, async database =>
        present(await changePerson(services(database), { ...targetOf(found), role })),
      ),
    resetTwoFactor: found =>
      withAccounts(context, config, async database => {
        await resetSecondFactor(services(database), targetOf(found))
      }),
    requireTwoFactor: (isTwoFactorRequired, account) =>
      withAccounts(context, config, async (database, accounts) => {
        const { id: accountId } = selectAccount(accounts, account)
        const input = { accountId, isTwoFactorRequired, actor: null }
        const all = { ...services(database), plans: mergePlans(config.plans) }
        return presentAccount(await changeAccount(all, input))
      }),
    remove: found =>
      withAccounts(context, config, async database => {
        await removePerson(services(database), targetOf(found))
      }),
  }
}

const present = (person: Person): OwnedPerson => ({
  ...presentPerson(person),
  account_id: person.account_id,
})

const targetOf = ({ id }: OwnedPerson): PersonTarget => ({
  personId: id,
  accountId: null,
  actor: null,
})
