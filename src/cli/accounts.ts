import { type Account, listAccounts, presentAccount } from '../accounts/account-store.ts'
import {
  changeAccount,
  createAccount,
  parseAccountInput,
  parseEmail,
  parseName,
  parsePlan,
} from '../accounts/accounts.ts'
import { listKeys } from '../accounts/key-store.ts'
import { mergePlans } from '../accounts/plan.ts'
import type { Config } from '../config/settings.ts'
import { type Database, openDatabase } from '../db/database.ts'
import { EvError } from '../platform/error.ts'
import { formatNumber } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { auditServices, databaseName, databaseUrl, openExisting } from './database.ts'
import { printJson, printText, timeText } from './print.ts'
import { readConfig } from './settings.ts'
import { type Column, table } from './table.ts'
import { widthOf } from './width.ts'

type AccountFlags = {
  readonly json?: boolean
  readonly name?: string
  readonly email?: string
  readonly plan?: string
  readonly [setting: string]: unknown
}

/** Runs `ev accounts list` and returns the exit code. */
export async function listCommand(context: CliContext, flags: AccountFlags): Promise<number> {
  const config = readConfig(context, flags)
  const database = await openExisting(context, config)
  try {
    const accounts = database === null ? [] : await listAccounts(database)
    const counts = await Promise.all(
      accounts.map(async ({ id }) =>
        database === null ? 0 : (await listKeys(database, id)).length,
      ),
    )
    const all = accounts.map((account, n) => ({ account, keys: counts[n] ?? 0 }))
    if (flags.json)
      printJson(
        context,
        all.map(({ account, keys }) => ({ ...presentAccount(account), keys })),
      )
    else if (all.length === 0)
      printText(
        context,
        `No accounts in ${databaseName(config)}. "ev serve" creates the first one.\n`,
      )
    else context.stdout.write(table(COLUMNS, all.map(rowOf), widthOf(context, context.stdout)))
    return 0
  } finally {
    await database?.close()
  }
}

/** Runs `ev accounts create` and returns the exit code. */
export async function createCommand(context: CliContext, flags: AccountFlags): Promise<number> {
  const config = readConfig(context, flags)
  const plans = mergePlans(config.plans)
  const base = { name: flags.name ?? '', plan: flags.plan ?? config.plan }
  // Validate before the next line creates a database.
  const input = parseAccountInput({ ...base, email: flags.email ?? null }, plans)
  const database = await openDatabase(databaseUrl(config), context.clock)
  try {
    const account = await createAccount(
      { ...auditServices(context), database, plans },
      { ...input, actor: null },
    )
    if (flags.json) printJson(context, presentAccount(account))
    else {
      const { id, name, plan } = account
      printText(
        context,
        `Created account ${id} "${name}" on the plan "${plan}". To create a key for it, run "ev keys create --name NAME --account ${id}".\n`,
      )
    }
    return 0
  } finally {
    await database.close()
  }
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'NAME' },
  { title: 'PLAN' },
  { title: 'EMAIL', dropRank: 2 },
  { title: 'ADMIN', dropRank: 3 },
  { title: 'KEYS', align: 'right' },
  { title: 'CREATED', dropRank: 1 },
]

const rowOf = ({ account, keys }: { account: Account; keys: number }) => [
  account.id,
  account.name,
  account.plan,
  account.email ?? '–',
  account.operator === 1 ? 'yes' : '–',
  formatNumber(keys),
  timeText(account.created_at),
]

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

/** Returns the account with that ID or name, or the only account if none is named. */
export function selectAccount(accounts: readonly Account[], idOrName: string | undefined): Account {
  const [first, second] =
    idOrName === undefined
      ? accounts
      : accounts.filter(({ id, name }) => id === idOrName || name === idOrName)
  if (first === undefined) {
    throw new EvError(
      'no_input',
      `Account ${sanitizeText(idOrName ?? '')} does not exist. To list accounts, run "ev accounts".`,
    )
  }
  if (second === undefined) return first
  const which =
    idOrName === undefined
      ? 'There are several accounts'
      : `Several accounts are named "${sanitizeText(idOrName)}"`
  throw new EvError(
    'usage',
    `${which}. Give the ID of one, such as ${first.id} or ${second.id}. To list accounts, run "ev accounts".`,
  )
}

const noAccount = (config: Config) =>
  new EvError(
    'no_input',
    `No accounts in ${databaseName(config)} yet. Start "ev serve", which creates the first one, or run "ev accounts create --name NAME". If the data is elsewhere, set --data-dir or --database.`,
  )

/** Runs `ev accounts set-name` and returns the exit code. */
export function setNameCommand(
  context: CliContext,
  idOrName: string,
  newName: string,
  flags: AccountFlags,
): Promise<number> {
  const name = parseName(newName, 'account')
  const config = readConfig(context, flags)
  return withAccounts(context, config, async (database, accounts) => {
    const account = selectAccount(accounts, idOrName)
    const services = { ...auditServices(context), database, plans: mergePlans(config.plans) }
    const changed = await changeAccount(services, { accountId: account.id, name, actor: null })
    if (flags.json) printJson(context, presentAccount(changed))
    else printText(context, `Renamed account ${account.id} from "${account.name}" to "${name}".\n`)
    return 0
  })
}

/** Runs `ev accounts set-plan` and returns the exit code. */
export function setPlanCommand(
  context: CliContext,
  idOrName: string,
  plan: string,
  flags: AccountFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  const plans = mergePlans(config.plans)
  parsePlan(plan, plans)
  return withAccounts(context, config, async (database, accounts) => {
    const account = selectAccount(accounts, idOrName)
    const services = { ...auditServices(context), database, plans }
    const changed = await changeAccount(services, { accountId: account.id, plan, actor: null })
    if (flags.json) printJson(context, presentAccount(changed))
    else {
      printText(
        context,
        `Changed the plan of account ${account.id} "${account.name}" from ${account.plan} to ${plan}. A running "ev serve" applies it within a second.\n`,
      )
    }
    return 0
  })
}

/** Runs `ev accounts set-email` and returns the exit code. */
export function setEmailCommand(
  context: CliContext,
  idOrName: string,
  address: string,
  flags: AccountFlags,
): Promise<number> {
  const email = address === 'none' ? null : parseEmail(address)
  const config = readConfig(context, flags)
  return withAccounts(context, config, async (database, accounts) => {
    const { id: accountId } = selectAccount(accounts, idOrName)
    const services = { ...auditServices(context), database, plans: mergePlans(config.plans) }
    const account = await changeAccount(services, { accountId, email, actor: null })
    if (flags.json) printJson(context, presentAccount(account))
    else printText(context, alertAddressText(account))
    return 0
  })
}

const alertAddressText = ({ id, name, email }: Account) =>
  email === null
    ? `Removed the address of account ${id} "${name}". Its alerts go to --notify-to of "ev serve", or to its log.`
    : `Alerts for account ${id} "${name}" now go to ${email}, through the mail server in --notify-smtp of "ev serve".`

/** Runs `ev accounts set-admin` and returns the exit code. */
export function setAdminCommand(
  context: CliContext,
  idOrName: string,
  word: string,
  flags: AccountFlags,
): Promise<number> {
  const isAdmin = parseOnOff(word)
  const config = readConfig(context, flags)
  return withAccounts(context, config, async (database, accounts) => {
    const { id: accountId } = selectAccount(accounts, idOrName)
    const services = { ...auditServices(context), database, plans: mergePlans(config.plans) }
    const account = await changeAccount(services, { accountId, isAdmin, actor: null })
    if (flags.json) printJson(context, presentAccount(account))
    else printText(context, accessText(account))
    return 0
  })
}

const accessText = ({ id, name, operator }: Account) =>
  operator === 1
    ? `Account ${id} "${name}" can now manage accounts over HTTP and open the Health page of the dashboard.`
    : `Account ${id} "${name}" can no longer manage accounts over HTTP or open the Health page of the dashboard.`

function parseOnOff(value: string): boolean {
  if (value === 'on' || value === 'off') return value === 'on'
  throw new EvError('usage', `The second argument is "${sanitizeText(value)}"; it takes on or off.`)
}
