import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { noSuchCommand } from './help.ts'

const ACCOUNTS_EXAMPLES = `
Examples:
  ev accounts
  ev accounts create --name Shop --plan starter
  ev accounts set-name Shop "Web shop"
  ev accounts set-plan Shop professional
  ev accounts set-email Shop owner@shop.example
  ev accounts set-admin Ops on

Keys, lists and history belong to one account; other accounts cannot see them. The plans are free, starter,
professional and enterprise, and those that the config file adds under "plans".

Alerts about webhooks and emails about finished lists go to the address of the account.

An admin account can open the Health page of the dashboard, and its keys can manage accounts over HTTP (/v1/accounts).
The account that the first start of "ev serve" creates is an admin.`

export function defineAccounts(
  accounts: Command,
  context: CliContext,
  setExitCode: SetExitCode,
): void {
  accounts.addHelpText('after', ACCOUNTS_EXAMPLES)
  addList(accounts, context, setExitCode)
  addCreate(accounts, context, setExitCode)
  addSetName(accounts, context, setExitCode)
  addSetPlan(accounts, context, setExitCode)
  addSetEmail(accounts, context, setExitCode)
  addSetAdmin(accounts, context, setExitCode)
}

function addList(accounts: Command, context: CliContext, setExitCode: SetExitCode): void {
  const list = accounts
    .command('list', { isDefault: true })
    .description('list all accounts, oldest first')
    .allowExcessArguments()
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev accounts list\n  ev accounts --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, accounts)
      const { listCommand } = await import('../accounts.ts')
      setExitCode(await listCommand(context, flags))
    })
  addSettings(list, context, DATA_SETTINGS)
}

function addCreate(accounts: Command, context: CliContext, setExitCode: SetExitCode): void {
  const create = accounts
    .command('create')
    .description('create an account')
    .requiredOption('--name <name>', 'name of the account')
    .option('--plan <name>', 'plan of the account (default: enterprise)')
    .option('--email <address>', 'address for webhook failure alerts')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts create --name Shop --plan starter')
    .action(async flags => {
      const { createCommand } = await import('../accounts.ts')
      setExitCode(await createCommand(context, flags))
    })
  addSettings(create, context, DATA_SETTINGS)
}

function addSetName(accounts: Command, context: CliContext, setExitCode: SetExitCode): void {
  const setName = accounts
    .command('set-name')
    .description('rename an account')
    .argument('<account>', 'ID or name of the account')
    .argument('<name>', 'new name, which no other account has')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts set-name Shop "Web shop"')
    .action(async (account: string, name: string, flags) => {
      const { setNameCommand } = await import('../accounts.ts')
      setExitCode(await setNameCommand(context, account, name, flags))
    })
  addSettings(setName, context, DATA_SETTINGS)
}

function addSetPlan(accounts: Command, context: CliContext, setExitCode: SetExitCode): void {
  const setPlan = accounts
    .command('set-plan')
    .description("change an account's plan")
    .argument('<account>', 'ID or name of the account')
    .argument('<plan>', 'name of the plan')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts set-plan Shop professional')
    .action(async (account: string, plan: string, flags) => {
      const { setPlanCommand } = await import('../accounts.ts')
      setExitCode(await setPlanCommand(context, account, plan, flags))
    })
  addSettings(setPlan, context, DATA_SETTINGS)
}

function addSetEmail(accounts: Command, context: CliContext, setExitCode: SetExitCode): void {
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
      const { setEmailCommand } = await import('../accounts.ts')
      setExitCode(await setEmailCommand(context, account, address, flags))
    })
  addSettings(setEmail, context, DATA_SETTINGS)
}

function addSetAdmin(accounts: Command, context: CliContext, setExitCode: SetExitCode): void {
  const setAdmin = accounts
    .command('set-admin')
    .description('grant or revoke admin rights of an account')
    .argument('<account>', 'ID or name of the account')
    .argument('<on|off>', 'on: grant admin rights; off: revoke them')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts set-admin Ops on')
    .action(async (account: string, word: string, flags) => {
      const { setAdminCommand } = await import('../accounts.ts')
      setExitCode(await setAdminCommand(context, account, word, flags))
    })
  addSettings(setAdmin, context, DATA_SETTINGS)
}

const AUDIT_EXAMPLES = `
Examples:
  ev audit
  ev audit --action key.created --since 7d
  ev audit --account shop --limit 1000 --json

The audit log records changes of keys, webhooks and accounts, sign-ins to the dashboard, and downloads of results.
An entry has the actor, the IP address and the target. Entries are kept for a year.`

export function defineAudit(audit: Command, context: CliContext, setExitCode: SetExitCode): void {
  audit
    .option('--account <account>', 'only entries of this account, by ID or name')
    .option('--action <name>', 'only entries with this action, such as key.created')
    .option('--since <time>', 'only entries since this time: 7d, 12h, or a date such as 2030-01-31')
    .option('--limit <n>', 'number of entries, up to 10000 (default: 50)')
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', AUDIT_EXAMPLES)
    .action(async flags => {
      const { auditCommand } = await import('../audit.ts')
      setExitCode(await auditCommand(context, flags))
    })
  addSettings(audit, context, DATA_SETTINGS)
}
