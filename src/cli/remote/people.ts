import type { EvClient } from '../../client/client.ts'
import type { Account, NewPerson, Person } from '../../client/types.ts'
import { ownAccount } from '../service.ts'

/** The people that the commands manage: of a database, or of a service. */
export type PeopleBackend = {
  /** Lists the people of an account, by ID or name, or of all. */
  list(account: string | undefined): Promise<readonly OwnedPerson[]>
  invite(input: NewPerson, account: string | undefined): Promise<PersonWithLink>
  /** Creates a new link. */
  link(person: OwnedPerson): Promise<PersonWithLink>
  setRole(person: OwnedPerson, role: Person['role']): Promise<OwnedPerson>
  resetTwoFactor(person: OwnedPerson): Promise<void>
  /** Sets whether the people of an account need a second factor. */
  requireTwoFactor(isRequired: boolean, account: string | undefined): Promise<Account>
  remove(person: OwnedPerson): Promise<void>
}

export type OwnedPerson = Person & { readonly account_id: string }

export type PersonWithLink = { readonly person: OwnedPerson; readonly url: string }

/** Manages the people of the account of a key. */
export function createRemotePeople(client: EvClient): PeopleBackend {
  const { people } = client
  const own = (account_id: string, person: Person) => ({ ...person, account_id })
  return {
    async list(account) {
      const { id } = await ownAccount(client, account)
      return (await people.list()).map(person => own(id, person))
    },
    async invite(input, account) {
      const { id } = await ownAccount(client, account)
      const { url, ...person } = await people.invite(input)
      return { person: own(id, person), url }
    },
    async link({ id, account_id }) {
      const { url, ...person } = await people.link(id)
      return { person: own(account_id, person), url }
    },
    setRole: async ({ id, account_id }, role) => own(account_id, await people.update(id, { role })),
    resetTwoFactor: ({ id }) => people.resetTwoFactor(id),
    async requireTwoFactor(isRequired, account) {
      await ownAccount(client, account)
      return client.account.update({ two_factor_required: isRequired })
    },
    remove: ({ id }) => people.delete(id),
  }
}
