import { listAccounts, presentAccount } from '../../accounts/account-store.ts'
import {
  changeAccount,
  createAccount,
  parseAccountInput,
  parseEmail,
  parsePlan,
} from '../../accounts/accounts.ts'
import { listKeys } from '../../accounts/key-store.ts'
import { mergePlans } from '../../accounts/plan.ts'
import type { Config } from '../../config/settings.ts'
import { openDatabase } from '../../db/database.ts'
import type { CliContext } from '../context.ts'
import { auditServices, openExisting } from '../database.ts'
import { databaseName, databaseUrl } from '../database-location.ts'
import type { AccountsBackend } from '../remote/accounts.ts'
import { selectAccount } from '../select-account.ts'
import { withAccounts } from './with-accounts.ts'

/** Manages the accounts of the database of this machine, as its admin. */
export function createLocalAccounts(context: CliContext, config: Config): AccountsBackend {
  const plans = mergePlans(config.plans)
  return {
    location: databaseName(config),
    async list() {
      const database = await openExisting(context, config)
      if (database === null) return []
      try {
        const accounts = await listAccounts(database)
        const counts = accounts.map(async ({ id }) => (await listKeys(database, id)).length)
        const keys = await Promise.all(counts)
        return accounts.map((account, n) => ({ ...presentAccount(account), keys: keys[n] ?? 0 }))
      } finally {
        await database.close()
      }
    },
    async create({ name, plan, email }) {
      // Validate before the next line creates a database.
      const input = parseAccountInput({ name, plan: plan ?? config.plan, email }, plans)
      const database = await openDatabase(databaseUrl(config), context.clock)
      try {
        const services = { ...auditServices(context), database, plans }
        return presentAccount(await createAccount(services, { ...input, actor: null }))
      } finally {
        await database.close()
      }
    },
    async change(
      idOrName,
      {
        admin: isAdmin,
        action_policy: actionPolicy,
        two_factor_required: isTwoFactorRequired,
        email,
        plan,
        name,
      },
    ) {
      if (plan !== undefined) parsePlan(plan, plans)
      if (typeof email === 'string') parseEmail(email)
      return withAccounts(context, config, async (database, accounts) => {
        const before = selectAccount(accounts, idOrName)
        const services = { ...auditServices(context), database, plans }
        const change = { name, plan, email, isAdmin, actionPolicy, isTwoFactorRequired }
        const input = { ...change, accountId: before.id, actor: null }
        const after = await changeAccount(services, input)
        return { before: presentAccount(before), after: presentAccount(after) }
      })
    },
  }
}
