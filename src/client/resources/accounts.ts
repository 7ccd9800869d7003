import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
import { encodeId } from '../path-id.ts'
import type {
  Account,
  AccountAnswer,
  AccountPage,
  AccountPatch,
  CreatedKey,
  ListAccountsQuery,
  NewAccount,
  NewKey,
  Plan,
  PlanList,
} from '../types.ts'
import { createRequests, type Listing } from './requests.ts'

/** Operations on all accounts, for the key of an admin account. */
export type Accounts = {
  /** Lists accounts, newest first. */
  list(query?: Omit<ListAccountsQuery, 'cursor'>, options?: CallOptions): Listing<Account>
  get(accountId: string, options?: CallOptions): Promise<Account>
  /** Creates an account, which has no keys yet. */
  create(account: NewAccount, options?: CreateOptions): Promise<Account>
  /** Updates an account; omitted fields keep their value. */
  update(accountId: string, changes: AccountPatch, options?: CallOptions): Promise<Account>
  /** Creates a key for an account. Only this response contains its secret. */
  createKey(accountId: string, key: NewKey, options?: CreateOptions): Promise<CreatedKey['data']>
  /** Lists the plans that an account can have. */
  plans(options?: CallOptions): Promise<Plan[]>
}

export function createAccountsResource(connection: Connection): Accounts {
  const { get, list, create, update } = createRequests(connection)
  return {
    list: (query, options) => list<AccountPage>('/v1/accounts', query, options),
    get: (accountId, options) => get<AccountAnswer>(accountPath(accountId), options),
    create: (account, options) => create<AccountAnswer>('/v1/accounts', account, options),
    update: (accountId, changes, options) =>
      update<AccountAnswer>(accountPath(accountId), changes, options),
    createKey: (accountId, key, options) =>
      create<CreatedKey>(`${accountPath(accountId)}/keys`, key, options),
    plans: async options => (await get<PlanList>('/v1/plans', options)).plans,
  }
}

const accountPath = (accountId: string) => `/v1/accounts/${encodeId(accountId)}`
