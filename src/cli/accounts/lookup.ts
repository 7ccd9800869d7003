import { type Account, listAccounts } from '../../accounts/account-store.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { CliContext } from '../context.ts'
import { databaseName, openKept } from '../database.ts'

/** Runs `work` on the database and all accounts; where there is none it says how one is made. */
export async function withAccounts<T>(
  context: CliContext,
  config: Config,
  work: (database: Database, accounts: readonly Account[]) => Promise<T>,
): Promise<T> {
  const database = await openKept(context, config)
  if (database === null) throw noAccount(config)
  try {
    const accounts = await listAccounts(database)
    if (accounts.length === 0) throw noAccount(config)
    return await work(database, accounts)
  } finally {
    await database.close()
  }
}

/** The account of that ID or name; the only one where none is named. */
export function chosenAccount(accounts: readonly Account[], given: string | undefined): Account {
  const [first, second] =
    given === undefined
      ? accounts
      : accounts.filter(({ id, name }) => id === given || name === given)
  if (first === undefined) {
    throw new EvError(
      'no_input',
      `There is no account ${sanitizeText(given ?? '')}. “ev accounts” lists those there are.`,
    )
  }
  if (second === undefined) return first
  const which =
    given === undefined ? 'several accounts' : `several accounts “${sanitizeText(given)}”`
  throw new EvError(
    'usage',
    `There are ${which}: say which is meant by its ID, such as ${first.id} or ${second.id} (see “ev accounts”).`,
  )
}

const noAccount = (config: Config) =>
  new EvError(
    'no_input',
    `There is no account in ${databaseName(config)} yet. Start “ev serve”, which makes the first one, or make one with “ev accounts create --name NAME”. If it is elsewhere, name the place with --data-dir or --database.`,
  )
