import type { Command } from 'commander'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { noSuchCommand } from './no-such-command.ts'

const EXAMPLES = `
Examples:
  ev accounts
  ev accounts create --name Shop --plan starter
  ev accounts set-plan Shop professional
  ev accounts set-email Shop owner@shop.example
  ev accounts set-admin Ops on

What an account owns, such as keys, lists and history, no other account sees. Plans: free, starter, professional,
enterprise, and those that the config file adds under "plans". Its address is told what could not be delivered to its
webhooks. The account of an operator sees on the dashboard how the whole service is; the first one that “ev serve”
makes is such a one.`

export function addAccounts(ev: Command, context: CliContext, end: EndWith): void {
  const accounts = ev
    .command('accounts')
    .description(
      'accounts of the HTTP service: see and make them, change plan, address and operator',
    )
    .addHelpText('after', EXAMPLES)
  addList(accounts, context, end)
  addCreate(accounts, context, end)
  addSetPlan(accounts, context, end)
  addSetEmail(accounts, context, end)
  addSetAdmin(accounts, context, end)
}

function addList(accounts: Command, context: CliContext, end: EndWith): void {
  const list = accounts
    .command('list', { isDefault: true })
    .description('all of them, the oldest first')
    .allowExcessArguments()
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev accounts list\n  ev accounts --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, accounts)
      const { listCommand } = await import('../accounts.ts')
      end(await listCommand(context, flags))
    })
  addSettings(list, context, DATA_SETTINGS)
}

function addCreate(accounts: Command, context: CliContext, end: EndWith): void {
  const create = accounts
    .command('create')
    .description('make one')
    .requiredOption('--name <name>', 'whose it is')
    .option('--email <address>', 'who is told of what could not be delivered')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts create --name Shop --plan starter')
    .action(async flags => {
      const { createCommand } = await import('../accounts.ts')
      end(await createCommand(context, flags))
    })
  addSettings(create, context, ['plan', ...DATA_SETTINGS])
}

function addSetPlan(accounts: Command, context: CliContext, end: EndWith): void {
  const setPlan = accounts
    .command('set-plan')
    .description('give one another plan')
    .argument('<account>', 'its ID or name')
    .argument('<plan>', 'the name of the plan')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts set-plan Shop professional')
    .action(async (account: string, plan: string, flags) => {
      const { setPlanCommand } = await import('../accounts-change.ts')
      end(await setPlanCommand(context, account, plan, flags))
    })
  addSettings(setPlan, context, DATA_SETTINGS)
}

function addSetEmail(accounts: Command, context: CliContext, end: EndWith): void {
  const setEmail = accounts
    .command('set-email')
    .description('say who is told of what could not be delivered to the webhooks of one')
    .argument('<account>', 'its ID or name')
    .argument('<address>', 'whom to write to; none: whoever --notify-to of “ev serve” names')
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      '\nExamples:\n  ev accounts set-email Shop owner@shop.example\n  ev accounts set-email Shop none',
    )
    .action(async (account: string, address: string, flags) => {
      const { setEmailCommand } = await import('../accounts-change.ts')
      end(await setEmailCommand(context, account, address, flags))
    })
  addSettings(setEmail, context, DATA_SETTINGS)
}

function addSetAdmin(accounts: Command, context: CliContext, end: EndWith): void {
  const setOperator = accounts
    .command('set-admin')
    .description(
      'say whether one is that of whoever runs the service: it sees Health on the dashboard',
    )
    .argument('<account>', 'its ID or name')
    .argument('<on|off>', 'on: it sees how the whole service is; off: itself alone')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts set-admin Ops on')
    .action(async (account: string, word: string, flags) => {
      const { setAdminCommand: setOperatorCommand } = await import('../accounts-change.ts')
      end(await setOperatorCommand(context, account, word, flags))
    })
  addSettings(setOperator, context, DATA_SETTINGS)
}
