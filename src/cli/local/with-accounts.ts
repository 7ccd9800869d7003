import { type Account, listAccounts } from '../../accounts/account-store.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { EvError } from '../../platform/error.ts'
import type { CliContext } from '../context.ts'
import { openExisting } from '../database.ts'
import { databaseName } from '../database-location.ts'

/**
 * Calls `work` with the database and its accounts. Throws EvError('no_input') if there are none.
 */
export async function withAccounts<T>(
  context: CliContext,
  config: Config,
  work: (database: Database, accounts: readonly Account[]) => Promise<T>,
): Promise<T> {
  const database = await openExisting(context, config)
  if (database === null) throw noAccount(config)
  try {
    const accounts = await listAccounts(database)
    if (accounts.length === 0) throw noAccount(config)
    return await work(database, accounts)
  } finally {
    await database.close()
  }
}

const noAccount = (config: Config) =>
  new EvError(
    'no_input',
    `No accounts in ${databaseName(config)} yet. Start "ev serve", which creates the first one, or run "ev accounts create --name NAME". If the data is elsewhere, set --data-dir or --database.`,
  )
