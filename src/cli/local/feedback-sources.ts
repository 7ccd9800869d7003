import type { Config } from '../../config/settings.ts'
import { listSources } from '../../feedback/source-store.ts'
import {
  createSource,
  deleteSource,
  presentCreatedSource,
  presentSource,
} from '../../feedback/sources.ts'
import type { CliContext } from '../context.ts'
import { auditServices } from '../database.ts'
import type { SourcesBackend } from '../remote/feedback-sources.ts'
import { selectAccount } from '../select-account.ts'
import { serviceSecretBox } from '../service-secret.ts'
import { withAccounts } from './with-accounts.ts'

/** Manages the feedback sources of all accounts in the database of this machine, as its admin. */
export function createLocalSources(context: CliContext, config: Config): SourcesBackend {
  const baseUrl = config.baseUrl ?? ''
  return {
    list: account =>
      withAccounts(context, config, async ({ reader }, accounts) => {
        const selected = account === undefined ? accounts : [selectAccount(accounts, account)]
        const sources = await Promise.all(selected.map(({ id }) => listSources(reader, id)))
        return sources.flat().map(source => ({
          ...presentSource(source, baseUrl),
          account_id: source.account_id,
        }))
      }),
    create: ({ provider, key }, account) =>
      withAccounts(context, config, async (database, accounts) => {
        const { id: accountId } = selectAccount(accounts, account)
        const secretBox = await serviceSecretBox(context, config, database)
        const services = { ...auditServices(context), database, secretBox }
        const created = await createSource(services, { accountId, provider, key })
        return { ...presentCreatedSource(created, baseUrl), account_id: accountId }
      }),
    delete: id =>
      withAccounts(context, config, async database => {
        await deleteSource({ ...auditServices(context), database }, { id, accountId: null })
      }),
  }
}
