import type { Command } from 'commander'
import { EvError } from '../../base/error.ts'
import { cleanText } from '../../base/text.ts'
import { addSettings, DATA_SETTINGS } from '../settings/settings.ts'

const EXAMPLES = `
Examples:
  ev accounts
  ev accounts create --name Shop --plan starter
  ev accounts set-plan Shop professional

What an account owns, such as keys, lists and history, no other account sees. Plans: free, starter, professional,
enterprise, and those that the config file adds under "plans".`

export function addAccounts(ev: Command): void {
  const accounts = ev
    .command('accounts')
    .description('accounts of the HTTP service: see and make them, change their plan')
    .addHelpText('after', EXAMPLES)
  addList(accounts)
  addCreate(accounts)
  addSetPlan(accounts)
}

function addList(accounts: Command): void {
  const list = accounts
    .command('list', { isDefault: true })
    .description('all of them, the oldest first')
    .allowExcessArguments()
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev accounts list\n  ev accounts --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, accounts)
      const { listCommand } = await import('../accounts/accounts.ts')
      process.exitCode = await listCommand(flags)
    })
  addSettings(list, DATA_SETTINGS)
}

/** As list is what `ev accounts` does by itself, whatever is no command arrives there. */
function noSuchCommand(given: string, accounts: Command): EvError {
  const names = accounts.commands.map(command => command.name()).join(', ')
  return new EvError('usage', `There is no “ev accounts ${cleanText(given)}”; there are ${names}.`)
}

function addCreate(accounts: Command): void {
  const create = accounts
    .command('create')
    .description('make one')
    .requiredOption('--name <name>', 'whose it is')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts create --name Shop --plan starter')
    .action(async flags => {
      const { createCommand } = await import('../accounts/accounts.ts')
      process.exitCode = await createCommand(flags)
    })
  addSettings(create, ['plan', ...DATA_SETTINGS])
}

function addSetPlan(accounts: Command): void {
  const setPlan = accounts
    .command('set-plan')
    .description('give one another plan')
    .argument('<account>', 'its ID or name')
    .argument('<plan>', 'the name of the plan')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev accounts set-plan Shop professional')
    .action(async (account: string, plan: string, flags) => {
      const { setPlanCommand } = await import('../accounts/accounts.ts')
      process.exitCode = await setPlanCommand(account, plan, flags)
    })
  addSettings(setPlan, DATA_SETTINGS)
}
