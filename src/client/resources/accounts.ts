import type { CallOptions, Connection, CreateOptions } from '../connection.ts'
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
import { createListing, type Listing, unwrapData } from './pagination.ts'

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

export function createAccountsResource({ json }: Connection): Accounts {
  return {
    list: (query, options) =>
      createListing(cursor => {
        const request = {
          method: 'GET',
          path: '/v1/accounts',
          query: { ...query, cursor },
        } as const
        return unwrapData(json<AccountPage>(request, options))
      }),
    get: (accountId, options) =>
      unwrapData(json<AccountAnswer>({ method: 'GET', path: accountPath(accountId) }, options)),
    create: (body, options) =>
      unwrapData(
        json<AccountAnswer>({ method: 'POST', path: '/v1/accounts', body, creates: true }, options),
      ),
    update: (accountId, body, options) =>
      unwrapData(
        json<AccountAnswer>({ method: 'PATCH', path: accountPath(accountId), body }, options),
      ),
    createKey: (accountId, body, options) =>
      unwrapData(
        json<CreatedKey>(
          { method: 'POST', path: `${accountPath(accountId)}/keys`, body, creates: true },
          options,
        ),
      ),
    async plans(options) {
      const request = { method: 'GET', path: '/v1/plans' } as const
      return (await unwrapData(json<PlanList>(request, options))).plans
    },
  }
}

const accountPath = (accountId: string) => `/v1/accounts/${encodeURIComponent(accountId)}`
