import type { EvClient } from '../../client/client.ts'
import type { Account, AccountPatch } from '../../client/types.ts'
import { selectAccount } from '../select-account.ts'
import { listAll } from '../service.ts'

/** The accounts that the commands manage: of a database, or of a service. */
export type AccountsBackend = {
  /** The place of the accounts, for messages. */
  readonly location: string
  /** Lists all accounts, oldest first. */
  list(): Promise<readonly ListedAccount[]>
  create(input: NewAccount): Promise<Account>
  change(
    idOrName: string,
    patch: AccountPatch,
  ): Promise<{ readonly before: Account; readonly after: Account }>
}

export type ListedAccount = Account & {
  /** Number of keys; null if it is not known. */
  readonly keys: number | null
}

type NewAccount = {
  readonly name: string
  /** Undefined for the default. */
  readonly plan: string | undefined
  readonly email: string | null
}

/** Manages the accounts of a service with the key of an admin account. */
export function createRemoteAccounts({ accounts }: EvClient, location: string): AccountsBackend {
  const list = async () => (await listAll(accounts.list({ limit: 100 }))).reverse()
  return {
    location,
    list: async () => (await list()).map(account => ({ ...account, keys: null })),
    create: ({ name, plan = DEFAULT_PLAN, email }) => accounts.create({ name, plan, email }),
    async change(idOrName, patch) {
      const before = selectAccount(await list(), idOrName)
      return { before, after: await accounts.update(before.id, patch) }
    },
  }
}

/** As on this machine without a setting. */
const DEFAULT_PLAN = 'enterprise'
