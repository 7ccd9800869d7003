import { type Command, Option } from 'commander'
import { ROLES } from '../../accounts/people/role.ts'
import { YES } from '../confirm.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings, DATA_SETTINGS } from '../settings.ts'
import { noSuchCommand } from './help.ts'

const EXAMPLES = `
Examples:
  ev people
  ev people invite --name "Ann Lee" --email ann@shop.example --role admin
  ev people link ann@shop.example
  ev people set-role ann@shop.example viewer
  ev people reset-two-factor ann@shop.example
  ev people remove ann@shop.example

People sign in to the dashboard of one account. A person sets a password at a link, which ev shows once and which works
for seven days. Admins may do everything in the account, members verify and manage lists and webhooks, viewers only
read.`

export function definePeople(people: Command, context: CliContext, setExitCode: SetExitCode): void {
  people.addHelpText('after', EXAMPLES)
  addList(people, context, setExitCode)
  addInvite(people, context, setExitCode)
  addLink(people, context, setExitCode)
  addSetRole(people, context, setExitCode)
  addResetTwoFactor(people, context, setExitCode)
  addRemove(people, context, setExitCode)
}

const ACCOUNT = ['--account <account>', 'account of the person, by ID or name'] as const
const PERSON = ['<person>', 'ID or email address of the person'] as const
const LINK_SETTINGS = [...DATA_SETTINGS, 'baseUrl'] as const

function addList(people: Command, context: CliContext, setExitCode: SetExitCode): void {
  const list = people
    .command('list', { isDefault: true })
    .description('list people with their roles')
    .allowExcessArguments()
    .option('--account <account>', 'only people of this account, by ID or name')
    .option('--json', 'print JSON: an array of objects')
    .addHelpText('after', '\nExamples:\n  ev people list\n  ev people --json')
    .action(async (flags, { args: [unknown] }: Command) => {
      if (unknown !== undefined) throw noSuchCommand(unknown, people)
      const { listCommand } = await import('../people.ts')
      setExitCode(await listCommand(context, flags))
    })
  addSettings(list, context, DATA_SETTINGS)
}

function addInvite(people: Command, context: CliContext, setExitCode: SetExitCode): void {
  const invite = people
    .command('invite')
    .description('invite a person to an account')
    .requiredOption('--name <name>', 'name of the person')
    .requiredOption('--email <address>', 'email address, with which the person signs in')
    .addOption(new Option('--role <role>', 'role of the person').choices(ROLES).default('member'))
    .option(...ACCOUNT)
    .option('--json', 'print JSON: one object')
    .addHelpText(
      'after',
      '\nExamples:\n  ev people invite --name "Ann Lee" --email ann@shop.example --role admin',
    )
    .action(async flags => {
      const { inviteCommand } = await import('../people.ts')
      setExitCode(await inviteCommand(context, flags))
    })
  addSettings(invite, context, LINK_SETTINGS)
}

function addLink(people: Command, context: CliContext, setExitCode: SetExitCode): void {
  const link = people
    .command('link')
    .description('create a new link, at which a person sets another password')
    .argument(...PERSON)
    .option(...ACCOUNT)
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev people link ann@shop.example')
    .action(async (person: string, flags) => {
      const { linkCommand } = await import('../people.ts')
      setExitCode(await linkCommand(context, person, flags))
    })
  addSettings(link, context, LINK_SETTINGS)
}

function addSetRole(people: Command, context: CliContext, setExitCode: SetExitCode): void {
  const setRole = people
    .command('set-role')
    .description('change the role of a person')
    .argument(...PERSON)
    .argument('<role>', ROLES.join(', '))
    .option(...ACCOUNT)
    .option('--json', 'print JSON: one object')
    .addHelpText('after', '\nExamples:\n  ev people set-role ann@shop.example viewer')
    .action(async (person: string, role: string, flags) => {
      const { setRoleCommand } = await import('../people.ts')
      setExitCode(await setRoleCommand(context, person, role, flags))
    })
  addSettings(setRole, context, DATA_SETTINGS)
}

function addResetTwoFactor(people: Command, context: CliContext, setExitCode: SetExitCode): void {
  const reset = people
    .command('reset-two-factor')
    .description('remove the second factor of a person who lost it')
    .argument(...PERSON)
    .option(...ACCOUNT)
    .option(...YES)
    .addHelpText('after', '\nExamples:\n  ev people reset-two-factor ann@shop.example')
    .action(async (person: string, flags) => {
      const { resetTwoFactorCommand } = await import('../people.ts')
      setExitCode(await resetTwoFactorCommand(context, person, flags))
    })
  addSettings(reset, context, DATA_SETTINGS)
}

function addRemove(people: Command, context: CliContext, setExitCode: SetExitCode): void {
  const remove = people
    .command('remove')
    .description('remove a person and end the sessions')
    .argument(...PERSON)
    .option(...ACCOUNT)
    .option(...YES)
    .addHelpText('after', '\nExamples:\n  ev people remove ann@shop.example')
    .action(async (person: string, flags) => {
      const { removeCommand } = await import('../people.ts')
      setExitCode(await removeCommand(context, person, flags))
    })
  addSettings(remove, context, DATA_SETTINGS)
}
