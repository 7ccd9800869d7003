import { getAuditPage, presentEntry } from '../../audit.ts'
import type { Config } from '../../config/settings.ts'
import type { CliContext } from '../context.ts'
import type { ListAudit } from '../remote/audit.ts'
import { selectAccount } from '../select-account.ts'
import { withAccounts } from './with-accounts.ts'

/** Reads the audit log of all accounts in the database of this machine. */
export const getLocalAudit =
  (context: CliContext, config: Config): ListAudit =>
  ({ account, ...query }) =>
    withAccounts(context, config, async (database, accounts) => {
      const accountId = account === undefined ? null : selectAccount(accounts, account).id
      const rows = await getAuditPage(database, { ...query, accountId, before: null })
      return rows.map(row => ({ ...presentEntry(row), account_id: row.account_id }))
    })
