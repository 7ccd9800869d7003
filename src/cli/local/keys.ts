import { PUBLISHABLE_SCOPES } from '../../accounts/key-rights.ts'
import { listKeys } from '../../accounts/key-store.ts'
import { createKey, getKey, type KeyInput, revokeKey, rotateKey } from '../../accounts/keys.ts'
import { mergePlans } from '../../accounts/plan.ts'
import { presentKey } from '../../accounts/present-key.ts'
import type { NewKey } from '../../client/types.ts'
import type { Config } from '../../config/settings.ts'
import type { CliContext } from '../context.ts'
import { auditServices } from '../database.ts'
import type { KeysBackend } from '../remote/keys.ts'
import { selectAccount } from '../select-account.ts'
import { withAccounts } from './with-accounts.ts'

/** Manages the keys of all accounts in the database of this machine, as its admin. */
export function createLocalKeys(context: CliContext, config: Config): KeysBackend {
  return {
    list: account =>
      withAccounts(context, config, async (database, accounts) => {
        const selected = account === undefined ? accounts : [selectAccount(accounts, account)]
        const keys = await Promise.all(selected.map(({ id }) => listKeys(database, id)))
        return keys.flat().map(key => ({ ...presentKey(key), account_id: key.accountId }))
      }),
    get: id =>
      withAccounts(context, config, async database =>
        presentKey(await getKey({ database }, { keyId: id, accountId: null })),
      ),
    create: (input, account) =>
      withAccounts(context, config, async (database, accounts) => {
        const owner = selectAccount(accounts, account)
        const services = { ...auditServices(context), database, plans: mergePlans(config.plans) }
        const { key, text } = await createKey(services, toKeyInput(input, owner.id))
        return { key: { ...presentKey(key), key: text }, account: owner }
      }),
    rotate: (id, graceMs) =>
      withAccounts(context, config, async (database, accounts) => {
        const services = { ...auditServices(context), database }
        const input = { keyId: id, accountId: null, actor: null, graceMs }
        const { key, text, previousExpiresAt } = await rotateKey(services, input)
        const account = selectAccount(accounts, key.accountId)
        return { key: { ...presentKey(key), key: text }, account, previousExpiresAt }
      }),
    revoke: (id, { isForced }) =>
      withAccounts(context, config, async database => {
        const services = { ...auditServices(context), database }
        await revokeKey(services, { keyId: id, accountId: null, actor: null, isForced })
      }),
  }
}

function toKeyInput(input: NewKey, accountId: string): KeyInput {
  const { name, scopes, test, expires_at, rate_limit_per_minute } = input
  return {
    accountId,
    actor: null,
    name,
    scopes: scopes ?? PUBLISHABLE_SCOPES,
    isTest: test === true,
    allowedIps: input.allowed_ips ?? [],
    allowedDomains: input.allowed_domains ?? [],
    expiresAt: typeof expires_at === 'string' ? Date.parse(expires_at) : null,
    ...(rate_limit_per_minute === undefined ? {} : { rateLimitPerMinute: rate_limit_per_minute }),
  }
}
