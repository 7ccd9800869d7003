import type { Command } from 'commander'
import { parseName } from '../accounts/name.ts'
import type { AccountPatch } from '../client/types.ts'
import { ACTION_POLICIES, type ActionPolicy } from '../engine/verdict/action.ts'
import { EvError } from '../platform/error.ts'
import { formatNumber } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { worksOnService } from './ev-command.ts'
import { noSuchCommand } from './help.ts'
import { parseOnOff } from './on-off.ts'
import { printJson, printText, timeText } from './print.ts'
import {
  type AccountsBackend,
  createRemoteAccounts,
  type ListedAccount,
} from './remote/accounts.ts'
import { connectService, type ServiceFlags } from './service.ts'
import { addSettings, DATA_SETTINGS, readConfig } from './settings.ts'
import { type Column, table } from './table.ts'
import { widthOf } from './width.ts'

const EXAMPLES = `
Examples:
  ev accounts
  ev accounts create --name Shop --plan starter
  ev accounts set-name Shop "Web shop"
  ev accounts set-plan Shop professional
  ev accounts set-email Shop owner@shop.example
  ev accounts set-admin Ops on
  ev accounts set-policy Shop strict

Keys, lists and history belong to one account; other accounts cannot see them. The plans are free, starter,
professional and enterprise, and those that the config file adds under "plans".

Alerts about webhooks and emails about finished lists go to the address of the account.

An admin account can open the Health page of the dashboard, and its keys can manage accounts over HTTP (/v1/accounts).
The account that the first start of "ev serve" creates is an admin.`

type AccountFlags = ServiceFlags & {
  readonly json?: boolean
  readonly [setting: string]: unknown
}

async function openAccounts(context: CliContext, flags: AccountFlags): Promise<AccountsBackend> {
  if (flags.service !== undefined) {
    return createRemoteAccounts(flags.service.url, await connectService(flags.service))
  }
  const config = readConfig(context, flags)
  const { createLocalAccounts } = await import('./local/accounts.ts')
  return createLocalAccounts(context, config)
}

export function defineAccounts(accounts: Command, context: CliContext): void {
  accounts.addHelpText('after', EXAMPLES)
  addList(accounts, context)
  addCreate(accounts, context)
  addSetName(accounts, context)
  addSetPlan(accounts, context)
  addSetEmail(accounts, context)
  addSetAdmin(accounts, context)
  addSetActionPolicy(accounts, context)
}

function addList(accounts: Command, context: CliContext): void {
  const list = accounts
    .command('list', { isDefault: true })
    .description('list all accounts, oldest first')
    .allowExcessArguments()
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev accounts list\n  ev accounts --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, accounts)
      await listCommand(context, flags)
    })
  addSettings(list, context, DATA_SETTINGS)
  worksOnService(list)
}

async function listCommand(context: CliContext, flags: AccountFlags): Promise<void> {
  const accounts = await openAccounts(context, flags)
  const all = await accounts.list()
  if (flags.json) printJson(context, all)
  else if (all.length === 0) {
    printText(context, `No accounts in ${accounts.location}. "ev serve" creates the first one.\n`)
  } else context.stdout.write(table(COLUMNS, all.map(rowOf), widthOf(context, context.stdout)))
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

const rowOf = ({ id, name, plan, email, admin, keys, created_at }: ListedAccount) => [
  id,
  sanitizeText(name),
  sanitizeText(plan),
  sanitizeText(email ?? '–'),
  admin ? 'yes' : '–',
  keys === null ? '–' : formatNumber(keys),
  timeText(Date.parse(created_at)),
]

type CreateFlags = AccountFlags & {
  readonly name: string
  readonly email?: string
  readonly plan?: string
}

function addCreate(accounts: Command, context: CliContext): void {
  const create = accounts
    .command('create')
    .description('create an account')
    .requiredOption('--name <name>', 'name of the account')
    .option('--plan <name>', 'plan of the account (default: enterprise)')
    .option('--email <address>', 'address for webhook failure alerts')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts create --name Shop --plan starter')
    .action(flags => createCommand(context, flags))
  addSettings(create, context, DATA_SETTINGS)
  worksOnService(create)
}

async function createCommand(context: CliContext, flags: CreateFlags): Promise<void> {
  const accounts = await openAccounts(context, flags)
  const { name, plan, email = null } = flags
  const account = await accounts.create({ name, plan, email })
  if (flags.json) printJson(context, account)
  else {
    printText(
      context,
      `Created account ${account.id} "${account.name}" on the plan "${account.plan}". To create a key for it, run "ev keys create --name NAME --account ${account.id}".\n`,
    )
  }
}

function addSetName(accounts: Command, context: CliContext): void {
  const setName = accounts
    .command('set-name')
    .description('rename an account')
    .argument('<account>', 'ID or name of the account')
    .argument('<name>', 'new name, which no other account has')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts set-name Shop "Web shop"')
    .action(async (account: string, newName: string, flags) => {
      const name = parseName(newName)
      const text = ({ before }: Changed) =>
        `Renamed account ${before.id} from "${before.name}" to "${name}".\n`
      await changeCommand(context, flags, account, { name }, text)
    })
  addSettings(setName, context, DATA_SETTINGS)
  worksOnService(setName)
}

type Changed = Awaited<ReturnType<AccountsBackend['change']>>

/** Changes an account and prints it, or the sentence that `text` returns. */
async function changeCommand(
  context: CliContext,
  flags: AccountFlags,
  idOrName: string,
  patch: AccountPatch,
  text: (changed: Changed) => string,
): Promise<void> {
  const accounts = await openAccounts(context, flags)
  const changed = await accounts.change(idOrName, patch)
  if (flags.json) printJson(context, changed.after)
  else printText(context, text(changed))
}

function addSetPlan(accounts: Command, context: CliContext): void {
  const setPlan = accounts
    .command('set-plan')
    .description("change an account's plan")
    .argument('<account>', 'ID or name of the account')
    .argument('<plan>', 'name of the plan')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts set-plan Shop professional')
    .action(async (account: string, plan: string, flags) => {
      const text = ({ before }: Changed) =>
        `Changed the plan of account ${before.id} "${before.name}" from ${before.plan} to ${plan}. A running "ev serve" applies it within a second.\n`
      await changeCommand(context, flags, account, { plan }, text)
    })
  addSettings(setPlan, context, DATA_SETTINGS)
  worksOnService(setPlan)
}

function addSetEmail(accounts: Command, context: CliContext): void {
  const setEmail = accounts
    .command('set-email')
    .description('set the address for alerts and for emails about finished lists')
    .argument('<account>', 'ID or name of the account')
    .argument('<address>', 'email address, or none to use --notify-to of "ev serve"')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      '\nExamples:\n  ev accounts set-email Shop owner@shop.example\n  ev accounts set-email Shop none',
    )
    .action(async (account: string, address: string, flags) => {
      const email = address === 'none' ? null : address
      await changeCommand(context, flags, account, { email }, alertAddressText)
    })
  addSettings(setEmail, context, DATA_SETTINGS)
  worksOnService(setEmail)
}

const alertAddressText = ({ after: { id, name, email } }: Changed) =>
  email === null
    ? `Removed the address of account ${id} "${name}". Its alerts go to --notify-to of "ev serve", or to its log.`
    : `Alerts for account ${id} "${name}" now go to ${email}, through the mail server in --notify-smtp of "ev serve".`

function addSetAdmin(accounts: Command, context: CliContext): void {
  const setAdmin = accounts
    .command('set-admin')
    .description('grant or revoke admin rights of an account')
    .argument('<account>', 'ID or name of the account')
    .argument('<on|off>', 'on: grant admin rights; off: revoke them')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts set-admin Ops on')
    .action(async (account: string, word: string, flags) => {
      const admin = parseOnOff('second', word)
      await changeCommand(context, flags, account, { admin }, accessText)
    })
  addSettings(setAdmin, context, DATA_SETTINGS)
  worksOnService(setAdmin)
}

function addSetActionPolicy(accounts: Command, context: CliContext): void {
  const setActionPolicy = accounts
    .command('set-policy')
    .description('set how results recommend to send, wait or suppress')
    .argument('<account>', 'ID or name of the account')
    .argument(
      '<policy>',
      `${ACTION_POLICIES.join(', ')}, or default to use --action-policy of "ev serve"`,
    )
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts set-policy Shop strict')
    .action(async (account: string, word: string, flags) => {
      const action_policy = parseActionPolicy(word)
      await changeCommand(context, flags, account, { action_policy }, policyText)
    })
  addSettings(setActionPolicy, context, DATA_SETTINGS)
  worksOnService(setActionPolicy)
}

const policyText = ({ after: { id, name, action_policy } }: Changed) =>
  action_policy === null
    ? `Account ${id} "${name}" now has the action policy of the service.\n`
    : `Account ${id} "${name}" now has the action policy ${action_policy}. Results that are stored get their action by it.\n`

function parseActionPolicy(word: string): ActionPolicy | null {
  if (word === 'default') return null
  const policy = ACTION_POLICIES.find(one => one === word)
  if (policy !== undefined) return policy
  throw new EvError(
    'usage',
    `The second argument is "${sanitizeText(word)}"; it takes ${ACTION_POLICIES.join(', ')} or default.`,
  )
}

const accessText = ({ after: { id, name, admin } }: Changed) =>
  admin
    ? `Account ${id} "${name}" can now manage accounts over HTTP and open the Health page of the dashboard.`
    : `Account ${id} "${name}" can no longer manage accounts over HTTP or open the Health page of the dashboard.`
